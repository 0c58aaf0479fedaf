"""Why something is opaque, pinned, refused or run at home: one closed list for every part of Tessera.

A reason is counted, shown in reports and stored in JSON by its value, so a value never changes its meaning. To add
one, write a line in the group it belongs to; ``docs/reasons.md`` is compared with this list by a test.
"""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What a reason leads to."""

    OPAQUE = "opaque"
    """Nothing bounded can be said about what the kernel reads and writes."""
    PINNED = "pinned"
    """The ranges may be known, but the kernel has to run where the program launched it."""
    REFUSED = "refused"
    """A placement was asked for, and this launch could not follow it."""
    FALLBACK = "fallback"
    """A range is sound but wider than it could be."""


class Reason(StrEnum):
    """One member per reason: ``value`` is its name in JSON and metrics, ``kind`` what it leads to, ``meaning`` a
    sentence for people."""

    kind: Kind
    meaning: str

    def __new__(cls, value: str, kind: Kind, meaning: str) -> Reason:
        member = str.__new__(cls, value)
        member._value_ = value
        member.kind = kind
        member.meaning = meaning
        return member

    # Opaque: found in the PTX.
    UNKNOWN_OPCODE = "unknown_opcode", Kind.OPAQUE, "An opcode that is not in the table may touch memory."
    UNKNOWN_MODIFIER = "unknown_modifier", Kind.OPAQUE, "A known opcode carries a modifier that is not understood."
    INDIRECT_CALL = "indirect_call", Kind.OPAQUE, "A call through a register may reach any function."
    UNDEFINED_CALLEE = "undefined_callee", Kind.OPAQUE, "A called function has no body in this module."
    RECURSIVE_CALL = "recursive_call", Kind.OPAQUE, "A function calls itself, so its body cannot be inlined."
    INLINE_LIMIT = "inline_limit", Kind.OPAQUE, "Inlining the called functions would exceed the size limit."
    POINTER_FROM_MEMORY = "pointer_from_memory", Kind.OPAQUE, "An address was itself loaded from memory."
    TWO_BASES = "two_bases", Kind.OPAQUE, "An address is the sum of two values that may both be pointers."
    NO_BASE = "no_base", Kind.OPAQUE, "An address comes from neither a parameter nor a module variable."
    TEXTURE = "texture", Kind.OPAQUE, "Texture instructions address memory through a handle."
    SURFACE = "surface", Kind.OPAQUE, "Surface instructions address memory through a handle."
    BULK_COPY = "bulk_copy", Kind.OPAQUE, "A bulk copy moves as many bytes as a register says."
    UNKNOWN_BRANCH = "unknown_branch", Kind.OPAQUE, "A branch may go where no label of the kernel is."
    TENSOR_MAP = "tensor_map", Kind.OPAQUE, "A tensor copy addresses memory through a tensor map."
    MULTIMEM = "multimem", Kind.OPAQUE, "A multimem address stands for memory of several devices."
    ADDRESS_SIZE_32 = "address_size_32", Kind.OPAQUE, "The module uses 32-bit addresses."
    MALFORMED_INSTRUCTION = (
        "malformed_instruction",
        Kind.OPAQUE,
        "A memory instruction has no address operand, or too few operands.",
    )
    ANALYSIS_LIMIT = "analysis_limit", Kind.OPAQUE, "The kernel exceeds a limit of the analysis."

    # Opaque: found when a launch is evaluated.
    UNKNOWN_BASE = "unknown_base", Kind.OPAQUE, "At this launch a pointer lies in no known allocation."

    # Opaque: found in the records of a program.
    UNKNOWN_IMAGE = "unknown_image", Kind.OPAQUE, "The module's image is not at hand, or is no module that can be read."
    NO_PTX = "no_ptx", Kind.OPAQUE, "The module has no PTX, or its PTX may not be what runs."
    UNKNOWN_KERNEL = "unknown_kernel", Kind.OPAQUE, "No record says which kernel it is, or its module lacks it."
    UNKNOWN_PARAMETERS = "unknown_parameters", Kind.OPAQUE, "The launch's parameters are not known, or too few."
    UNKNOWN_WORK = "unknown_work", Kind.OPAQUE, "Work of which only the driver function is known."
    UNKNOWN_GRAPH = "unknown_graph", Kind.OPAQUE, "A graph that could not be read, or a node of an unknown kind."

    # Pinned: kernels that talk while they run, or whose pointers are more than address bases.
    POINTER_ESCAPES = "pointer_escapes", Kind.PINNED, "A pointer is stored, compared, converted or passed on."
    DEVICE_PRINTF = "device_printf", Kind.PINNED, "The kernel prints through the device's output buffer."
    DEVICE_MALLOC = "device_malloc", Kind.PINNED, "The kernel allocates from the device's heap."
    DEVICE_ASSERT = "device_assert", Kind.PINNED, "A failing assertion of the kernel is reported to its context."
    GRID_SYNC = "grid_sync", Kind.PINNED, "Blocks wait for each other while the kernel runs."
    VOLATILE_ACCESS = "volatile_access", Kind.PINNED, "A volatile access may talk to somebody outside the kernel."
    SYSTEM_SCOPE = "system_scope", Kind.PINNED, "A system-scope access or fence may talk to the host or another device."
    ACQUIRE_IN_LOOP = "acquire_in_loop", Kind.PINNED, "An acquire load in a loop waits for somebody else's write."
    CLUSTER = "cluster", Kind.PINNED, "The kernel is launched as thread-block clusters."
    COOPERATIVE_LAUNCH = "cooperative_launch", Kind.PINNED, "The launch is cooperative."
    LAUNCH_ATTRIBUTE = "launch_attribute", Kind.PINNED, "The launch carries an attribute that is not on the list."

    # Pinned: by the memory that a launch touches.
    MANAGED_MEMORY = "managed_memory", Kind.PINNED, "The launch touches managed memory."
    HOST_MEMORY = "host_memory", Kind.PINNED, "The launch touches host memory."
    SHARED_MEMORY = "shared_memory", Kind.PINNED, "The launch touches memory that other processes may use."
    PEER_MEMORY = "peer_memory", Kind.PINNED, "The launch touches another GPU's memory."
    ALIASED_MEMORY = "aliased_memory", Kind.PINNED, "The launch touches memory that has more than one address."
    UNBOUNDED_WRITE = "unbounded_write", Kind.PINNED, "The launch may write anywhere in an allocation."

    # Refused: a placement asked for another GPU.
    # A launch that is opaque or pinned is refused by that reason.
    UNKNOWN_DEVICE = "unknown_device", Kind.REFUSED, "The placement names a GPU that is not there."
    NO_IMAGE = "no_image", Kind.REFUSED, "The GPU cannot compile the PTX that describes the kernel."
    FULL_DEVICE = "full_device", Kind.REFUSED, "The GPU has not enough memory for the replicas."
    UNKNOWN_ADDRESS = "unknown_address", Kind.REFUSED, "A module variable must be read, and its address is not known."
    FOREIGN_VARIABLE = "foreign_variable", Kind.REFUSED, "The launch touches a variable of another kernel's module."
    NOT_DETERMINISTIC = "not_deterministic", Kind.REFUSED, "A launch to be mirrored may give other bytes each time."
    DEVICE_VARIANT = "device_variant", Kind.REFUSED, "A launch to be mirrored may give other bytes on another GPU."
    CONTENT_MISMATCH = "content_mismatch", Kind.REFUSED, "A table does not hold what the program was seen to put there."


def reason(value: str) -> Reason:
    """The reason of that value. Raises ``ValueError`` when there is none."""
    found = next((member for member in Reason if member.value == value), None)
    if found is None:
        raise ValueError(f"no such reason: {value!r}")
    return found


def reasons(kind: Kind) -> tuple[Reason, ...]:
    """The reasons of one kind, in the order of the list."""
    return tuple(reason for reason in Reason if reason.kind is kind)
