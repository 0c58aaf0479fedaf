"""Packed parts of images of device code, as nvcc makes them: Zstandard frames, or LZ4 blocks."""

from __future__ import annotations

from enum import IntEnum

from tessera.errors import TesseraError


class Packing(IntEnum):
    """How a part of an image is packed. The software driver and its compile service name them by these numbers."""

    ZSTANDARD = 1
    LZ4 = 2


class PackedImageError(TesseraError):
    """Bytes that do not unpack to what is announced."""


def unpack(packed: bytes, packing: Packing, size: int) -> bytes:
    """The ``size`` bytes that ``packed`` stands for; never makes more. Raises PackedImageError."""
    if size == 0:
        raise PackedImageError("it announces that it is empty")
    try:
        content = _zstandard(packed, size) if packing == Packing.ZSTANDARD else _lz4(packed, size)
    except ImportError as error:
        raise PackedImageError(f"unpacking needs the package {error.name} (the extra 'softgpu')") from error
    if len(content) != size:
        raise PackedImageError(f"it has {len(content)} bytes, not the {size} that it announces")
    return content


def _zstandard(packed: bytes, size: int) -> bytes:
    import zstandard

    try:
        # A frame may say how much memory it wants before it gives any of it.
        frame = zstandard.get_frame_parameters(packed)
        if frame.content_size not in (size, zstandard.CONTENTSIZE_UNKNOWN):
            raise PackedImageError(f"it has {frame.content_size} bytes, not the {size} that it announces")
        return bytes(zstandard.ZstdDecompressor().decompress(packed, max_output_size=size, allow_extra_data=False))
    except zstandard.ZstdError as error:
        raise PackedImageError(f"no Zstandard frame: {error}") from None


def _lz4(packed: bytes, size: int) -> bytes:
    import lz4.block

    try:
        return bytes(lz4.block.decompress(packed, uncompressed_size=size))
    except lz4.block.LZ4BlockError as error:
        raise PackedImageError(f"no LZ4 block: {error}") from None
