/* Needs nobody, and ends at once. */
__asm__(".globl _start\n_start:\nmovl $60, %eax\nxorl %edi, %edi\nsyscall\n");
