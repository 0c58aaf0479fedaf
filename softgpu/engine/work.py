"""What an executed instruction counts as: classes of operations and bytes, for one thread."""

from __future__ import annotations

from ptxparse.model import TYPE_BYTES, Immediate, Instruction, Mnemonic
from ptxparse.opcodes import fragment, matrix_shape, multiplicand

CLASSES = (
    "integer", "half", "single", "double", "special", "tensor", "convert", "move", "control", "barrier", "exchange",
    "memory", "atomics", "global_read", "global_written", "shared_read", "shared_written", "local_read",
    "local_written", "param_read", "products",
)
"""Names of ``enum sg_class``, in its order."""

_OPCODES = {
    "special": ("ex2", "lg2", "sin", "cos", "tanh", "rcp", "rsqrt", "sqrt"),
    "tensor": ("mma",),
    "convert": ("cvt", "cvta"),
    "move": ("mov", "selp", "slct", "prmt", "isspacep", "createpolicy"),
    "control": ("bra", "brx", "exit", "ret", "call", "trap", "brkpt", "nanosleep", "griddepcontrol", "setmaxnreg",
                "pmevent"),
    "barrier": ("bar", "barrier", "membar", "fence"),
    "exchange": ("shfl", "vote", "match", "redux", "activemask", "elect", "movmatrix"),
    "memory": ("ld", "ldu", "st", "cp", "ldmatrix", "stmatrix", "prefetch", "prefetchu", "discard", "applypriority"),
    "atomics": ("atom", "red"),
}
_CLASS_OF = {opcode: name for name, opcodes in _OPCODES.items() for opcode in opcodes}
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_SIXTEENTHS = {"b1": 1, "s4": 4, "u4": 4, "e2m1": 4, "s8": 8, "u8": 8, "tf32": 32, "f32": 32, "f64": 256}
"""How long tensor cores take for a product, in sixteenths of one of f16."""


def class_of(mnemonic: str) -> str:
    """The class that an instruction's operation is counted in."""
    opcode, *modifiers = mnemonic.split(".")
    if opcode == "wmma":
        return "tensor" if modifiers and modifiers[0] == "mma" else "memory"
    found = _CLASS_OF.get(opcode)
    if found is not None:
        return found
    kind = modifiers[-1] if modifiers else ""
    if kind in ("f16", "f16x2", "bf16", "bf16x2"):
        return "half"
    return {"f32": "single", "f64": "double"}.get(kind, "integer")


def counted_as(instruction: Instruction) -> str:
    """The name under which an instruction is counted: its mnemonic, and the bytes that ``cp.async`` copies."""
    if instruction.opcode == "cp" and len(instruction.operands) > 2:
        size = instruction.operands[2]
        if isinstance(size, Immediate):
            return f"{instruction.mnemonic} {size.value}"
    return instruction.mnemonic


def mnemonic_of(counted: str) -> str:
    """The mnemonic of what is counted under a name of :func:`counted_as`."""
    return counted.partition(" ")[0]


def work_of(counted: str) -> dict[str, int]:
    """Work of one execution by one thread; bytes are those that the thread itself accesses, of a matrix that a warp
    moves a thread's share. ``cp.async`` that fills up with zeros counts as if it read all."""
    mnemonic, _, copied = counted.partition(" ")
    opcode, *modifiers = mnemonic.split(".")
    work = {class_of(mnemonic): 1}
    if "tensor" in work:
        _add(work, "products", products(mnemonic))
    count = next((_VECTORS[m] for m in modifiers if m in _VECTORS), 1)
    size = TYPE_BYTES.get(modifiers[-1], 0) * count if modifiers else 0
    space = next((m.partition("::")[0] for m in modifiers
                  if m.partition("::")[0] in ("global", "const", "shared", "local", "param")), "global")
    if opcode in ("ld", "ldu"):
        _add(work, {"const": "param"}.get(space, space) + "_read", size)
    elif opcode == "st":
        _add(work, ("local" if space == "param" else space) + "_written", size)
    elif opcode in ("atom", "red"):
        _add(work, f"{space}_read", size)
        _add(work, f"{space}_written", size)
    elif copied:
        _add(work, "global_read", int(copied))
        _add(work, "shared_written", int(copied))
    elif opcode in ("ldmatrix", "stmatrix", "wmma"):
        space = "shared" if opcode != "wmma" else space
        _add(work, f"{space}_{'written' if opcode == 'stmatrix' or 'store' in modifiers else 'read'}", _share(mnemonic))
    return work


def products(mnemonic: str) -> int:
    """A thread's share of the products of a matrix instruction, in products of f16 that take tensor cores as long: one
    of 8, 4 and 1 bits takes a half, a quarter and a sixteenth, tf32 twice and f64 16 times as long, a sparse one a half
    (NVIDIA A100 Tensor Core GPU Architecture, table 1 and 3)."""
    opcode, *modifiers = mnemonic.split(".")
    parsed = Mnemonic(mnemonic, opcode, tuple(modifiers))
    shape = matrix_shape(parsed)
    if shape is None:
        return 0
    kind = multiplicand(parsed)
    sixteenths = _SIXTEENTHS.get(kind, 8 if kind.startswith("e") else 16)
    return shape.m * shape.n * shape.k * sixteenths // (32 if "sp" in modifiers else 16) // shape.threads


def _share(mnemonic: str) -> int:
    """Bytes of a matrix in memory that fall to each of 32 threads; 0 for matrix products."""
    opcode, *modifiers = mnemonic.split(".")
    if opcode in ("ldmatrix", "stmatrix"):
        return 4 * next((int(m[1:]) for m in modifiers if m in ("x1", "x2", "x4")), 0)
    moved = fragment(Mnemonic(mnemonic, opcode, tuple(modifiers)))
    return moved.lines * moved.line_bytes // 32 if moved else 0


def _add(work: dict[str, int], name: str, size: int) -> None:
    if name in CLASSES:
        work[name] = work.get(name, 0) + size


def row_of(counter: dict[str, int]) -> list[int]:
    """One row of ``sg_kernel.counter_work`` for a counter that stands for some instructions by mnemonic."""
    row = dict.fromkeys(CLASSES, 0)
    for mnemonic, times in counter.items():
        for name, amount in work_of(mnemonic).items():
            row[name] += times * amount
    return list(row.values())
