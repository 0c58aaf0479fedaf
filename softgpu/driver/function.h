/* Kernels, by the handles that programs have of them. */
#ifndef SOFTGPU_FUNCTION_H
#define SOFTGPU_FUNCTION_H

#include "module.h"

/* A variable for what the functions below give: until its end it holds the function's module. */
#define HELD_FUNCTION __attribute__((cleanup(function_let_go))) struct function *
void function_let_go(struct function **function);

/* Of a CUfunction alone. */
bool function_held(CUfunction handle, struct function **function);

/* Of a CUfunction, or of a CUkernel, which is loaded into the context of `place` if it is not yet there. */
CUresult function_of(CUfunction handle, const struct stream_place *place, struct function **function);

/* The same in the current context. */
CUresult function_here(CUfunction handle, struct function **function);

/* It is loaded by its first use, if not before. */
void function_use(struct function *function);

/* Of a block. */
int most_threads(const struct description_kernel *described);

/* Most bytes of dynamic shared memory that a launch may ask for; `fixed` are those that the kernel itself has. */
int settings_dynamic_shared(const struct settings *settings, int fixed);

/* What attribute functions of both handles do. */
CUresult attribute_get(int *value, CUfunction_attribute attribute, struct code *code, struct code_kernel *kernel,
                       const struct settings *settings, CUdevice device);
CUresult attribute_set(CUfunction_attribute attribute, int value, struct code *code, struct code_kernel *kernel,
                       struct settings *settings, CUdevice device);
CUresult parameter_info(const struct code_kernel *kernel, size_t index, size_t *offset, size_t *size);

#endif
