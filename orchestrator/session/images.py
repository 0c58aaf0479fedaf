"""Images of device code, as programs hand them to the driver: what PTX is in them, and for which device it is what
runs. ``docs/images.md`` has the layout of containers."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import NamedTuple

from tessera.packed import PackedImageError, Packing, unpack
from tessera.reasons import Reason

LARGEST = 256 << 20
"""Bytes of a part of an image when it is unpacked; one that announces more cannot be read."""
MOST_ENTRIES = 4096
"""Parts of an image; one that has more is taken for damaged."""
_FATBIN, _ELF = b"\x50\xed\x55\xba", b"\x7fELF"
_CONTAINER = struct.Struct("<4sHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_PTX, _CUBIN = 1, 2
_LZ4, _ZSTANDARD, _ALONE, _FAMILY = 0x2000, 0x8000, 0x100000, 0x200000
_SECTION = struct.Struct("<IIQQQQIIQQ")
_ELF_BYTES = 64
_NOTE = struct.Struct("<III12sHH")  # lengths, type, owner, version, virtual architecture
_CUINFO, _OWNER, _NOTE_VERSION = b".note.nv.cuinfo\0", b"NVIDIA Corp\0", 2


class Target(NamedTuple):
    """An architecture: ``number`` 86 for 8.6. ``suffix``: ``a`` if only that device runs what is compiled for it, ``f``
    if later ones of its family do, which have the same major number; else all later ones do."""

    number: int
    suffix: str = ""

    def fits(self, capability: int) -> bool:
        """Whether a device, of 10 * major + minor, can compile PTX for it."""
        if self.suffix == "a":
            return self.number == capability
        return self.number <= capability and (not self.suffix or self.family == capability // 10)

    @property
    def family(self) -> int:
        return self.number // 10


def target_of(name: str) -> Target | None:
    """What ``sm_90a`` in ``.target`` of a PTX text means."""
    number = name.removeprefix("sm_").rstrip("af")
    suffix = name.removeprefix("sm_")[len(number) :]
    if not name.startswith("sm_") or not number.isascii() or not number.isdigit() or len(number) > 3 or len(suffix) > 1:
        return None
    return Target(int(number), suffix)


@dataclass(frozen=True, eq=False)
class Part:
    """A PTX text in an image, or machine code. ``target`` is what its container says, None if it stands alone."""

    data: bytes = field(repr=False)
    target: Target | None = None
    packing: Packing | None = None
    size: int = 0

    def content(self) -> bytes:
        """Its bytes. Raises PackedImageError."""
        if self.packing is None:
            return self.data
        if self.size > LARGEST:
            raise PackedImageError(f"it announces {self.size} bytes; at most {LARGEST} are read")
        return unpack(self.data, self.packing, self.size)

    def text(self) -> str:
        """A text ends at the first zero byte. Raises PackedImageError."""
        return self.content().partition(b"\0")[0].decode(errors="replace")


class MachineCode(NamedTuple):
    """``virtual``: the number of the architecture whose PTX it was compiled from, None if nobody says."""

    target: Target
    virtual: int | None

    def fits(self, capability: int) -> bool:
        """Whether a device runs it: those of its family that are not older, unless it is for one alone."""
        return self.target.fits(capability) and self.target.family == capability // 10


class Container(NamedTuple):
    texts: tuple[Part, ...]
    machine: tuple[MachineCode, ...]

    def chosen(self, capability: int) -> Part | Reason | None:
        """What :meth:`Image.chosen` says of one container; None if it has nothing for the device."""
        machine = [code for code in self.machine if code.fits(capability)]
        if machine:
            code = max(machine, key=lambda code: _rank(code.target))
            same = [text for text in self.texts if text.target == (code.virtual, code.target.suffix)]
        else:
            fitting = [text for text in self.texts if text.target and text.target.fits(capability)]
            if not fitting:
                return None
            best = max(_rank(text.target) for text in fitting)
            same = [text for text in fitting if _rank(text.target) == best]
        return same[0] if len(same) == 1 else Reason.NO_PTX


class Image(NamedTuple):
    """``alone``: it is a PTX text; else it has containers, one behind the other, or none if it is machine code."""

    alone: Part | None
    containers: tuple[Container, ...] = ()

    @property
    def texts(self) -> list[Part]:
        return [self.alone] if self.alone else [text for container in self.containers for text in container.texts]

    def chosen(self, capability: int | None) -> Part | Reason:
        """The PTX that says what runs on a device, of 10 * major + minor; or why nobody can know. The driver takes
        machine code for the device before it compiles PTX: then that from which the machine code was made counts."""
        if self.alone:
            return self.alone
        for container in self.containers:
            found = None if capability is None else container.chosen(capability)
            if found is not None:
                return found
        return Reason.NO_PTX


def read(data: bytes) -> Image | None:
    """What an image holds; None if it is damaged."""
    if data.startswith(_ELF):
        return Image(None)
    if not data.startswith(_FATBIN):
        return Image(Part(data, size=len(data)))
    containers: list[Container] = []
    at, entries = 0, 0
    while data.startswith(_FATBIN, at):
        if len(data) - at < _CONTAINER.size:
            return None
        _, version, header, size = _CONTAINER.unpack_from(data, at)
        start, at = at + header, at + header + size
        if version != 1 or header < _CONTAINER.size or at > len(data):
            return None
        found = _parts(data, start, at)
        entries += 1 + len(found or ())
        if found is None or entries > MOST_ENTRIES:
            return None
        containers.append(_container(found))
    return Image(None, tuple(containers))


def _parts(data: bytes, at: int, end: int) -> list[tuple[int, Part]] | None:
    """The kinds and the parts of a container between two offsets; None if it is damaged."""
    found: list[tuple[int, Part]] = []
    while at < end:
        if end - at < _ENTRY.size or len(found) > MOST_ENTRIES:
            return None
        kind, _, header, length, packed, _, _, _, number, _, _, flags, _, size = _ENTRY.unpack_from(data, at)
        packing = Packing.ZSTANDARD if flags & _ZSTANDARD else Packing.LZ4 if flags & _LZ4 else None
        used = length if packing is None else packed
        start, at = at + header, at + header + length
        if header < _ENTRY.size or at > end or used > length:
            return None
        target = Target(number & 0xFFFF, "a" if flags & _ALONE else "f" if flags & _FAMILY else "")
        found.append((kind, Part(data[start : start + used], target, packing, size if packing else used)))
    return found


def _container(parts: list[tuple[int, Part]]) -> Container:
    texts = tuple([part for kind, part in parts if kind == _PTX])
    targets = [text.target for text in texts if text.target]
    machine = []
    for kind, part in parts:
        if kind == _CUBIN and (target := part.target):
            # It takes unpacking to know, so it is asked only where a text might be what it was made from.
            asked = any(t.suffix == target.suffix and t.number <= target.number for t in targets)
            machine.append(MachineCode(target, _virtual(part) if asked else None))
    return Container(texts, tuple(machine))


def _rank(target: Target | None) -> tuple[int, int]:
    """How close a target is to a device that it fits."""
    return (target.number, ("", "f", "a").index(target.suffix)) if target else (0, 0)


def _virtual(cubin: Part) -> int | None:
    """The number of the virtual architecture that machine code names in its note ``.note.nv.cuinfo``."""
    try:
        data = cubin.content()
    except PackedImageError:
        return None
    if len(data) < _ELF_BYTES or not data.startswith(_ELF):
        return None
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    if size != _SECTION.size or table + count * size > len(data) or names >= count:
        return None
    sections = [_SECTION.unpack_from(data, table + k * size) for k in range(count)]
    strings = sections[names][4]
    for name, _, _, _, offset, length, *_ in sections:
        if data.startswith(_CUINFO, strings + name) and length >= _NOTE.size and offset + length <= len(data):
            _, _, _, owner, version, virtual = _NOTE.unpack_from(data, offset)
            return int(virtual) if owner == _OWNER and version == _NOTE_VERSION else None
    return None
