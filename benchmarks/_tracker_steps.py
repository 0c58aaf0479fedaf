"""Records of a program whose steps repeat themselves, as many as are asked for, made from those of one step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shim.layout import ffi
from shim.wire import Kind, lib
from tests.generated.kernels import KERNELS, layout, parameters, text
from tests.program_records import CONTEXT, MODULE, Program

LAYERS, ELEMENTS, WIDTH = 100, 4096, 64
USED = ("affine", "two", "accumulate", "scaled", "inplace")
"""Kernels of a layer. The running number ``salt`` among their parameters is another one in each step, and does not
matter for the bytes that they touch."""
_AT, _BYTES = 0x10_0000_0000, 4 * ELEMENTS
_SEQUENCE, _TICKS = (ffi.offsetof("struct wire_head", name) // 8 for name in ("sequence", "ticks"))
_OF = ffi.offsetof("struct wire_outcome", "of") // 8
_PARAMETERS = ffi.sizeof("struct wire_launch")


def beginning() -> Program:
    """What there is: a module, its kernels, memory."""
    program = Program()
    program.begin()
    program.module(text().encode())
    for number, name in enumerate(USED):
        slots, _ = layout(name)
        program.function(name, list(slots.values()), 0xF000 + number)
    for number in range(3 * LAYERS + 2):
        program.memory(_address(number), _BYTES)
    program.synchronize()
    return program


def _address(number: int) -> int:
    return _AT + number * _BYTES


class Steps:
    """The records of one step behind ``program``, which is given them: three small uploads, five launches a layer, and
    a copy to the host for which the program waits."""

    def __init__(self, program: Program) -> None:
        begin = len(program.data)
        for number in range(3):
            program.to_device(_address(3 * LAYERS) + 64 * number, bytes(64))
        for layer in range(LAYERS):
            for number, name in enumerate(USED):
                values = {"out": _address(3 * layer), "other": _address(3 * layer + 1), "in": _address(3 * layer + 3),
                          "n": ELEMENTS, "salt": 0}
                block = parameters(name, {key: values[key] for key, _ in KERNELS[name].parameters})
                program.launch(block, 0xF000 + number, ELEMENTS // WIDTH, WIDTH)
        program.to_host(_address(0), bytes(16))
        made = program.data[begin:]
        self.records, self.first = len(made), program.sequence - len(made)
        at = np.cumsum([0, *[len(one) // 8 for one in made]])
        self._words = np.frombuffer(b"".join(made), np.uint64)
        self._ticks = at[:-1] + _TICKS
        outcomes = [place for place, one in enumerate(made) if int.from_bytes(one[4:6], "little") == Kind.OUTCOME]
        self._numbers = np.concatenate([at[:-1] + _SEQUENCE, at[outcomes] + _OF])
        self._salts = np.array([
            8 * at[place] + _PARAMETERS + layout(name)[0]["salt"][0]
            for place, one in enumerate(made) if int.from_bytes(one[4:6], "little") == Kind.LAUNCH
            for name in (USED[(place - 3) % len(USED)],)]) // 4
        self.starts = at

    def following(self, first: int, count: int) -> bytes:
        """So many steps, of which the first is step ``first`` behind the one of this."""
        many = np.tile(self._words, (count, 1))
        steps = np.arange(first, first + count, dtype=np.uint64)[:, None]
        many[:, self._numbers] += steps * np.uint64(self.records)
        many[:, self._ticks] += steps * np.uint64(1000)
        many.view(np.uint32)[:, self._salts] = steps & np.uint64(0xFFFFFFFF)
        return many.tobytes()

    def batches(self, first: int, count: int, size: int = 1 << 18) -> Iterator[bytes]:
        """The same in batches of about ``size`` bytes, cut anywhere between records."""
        rest = b""
        for step in range(first, first + count, 16):
            rest += self.following(step, min(16, first + count - step))
            at = 0
            while len(rest) - at > size:
                end = self._cut(rest, at, size)
                yield rest[at:end]
                at = end
            rest = rest[at:]
        yield rest

    def _cut(self, data: bytes, at: int, size: int) -> int:
        end = at
        while end - at < size:
            end += int.from_bytes(data[end:end + 4], "little")
        return end


assert lib.WIRE_INLINE_BYTES >= 64 and CONTEXT and MODULE
