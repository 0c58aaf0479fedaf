"""Where the service's socket, lock and log lie; mirrored by ``runtime/client_paths.c``."""

from __future__ import annotations

from pathlib import Path

from softgpu.engine.errors import ServiceError
from tessera.private import runtime_folder

LONGEST = 107  # bytes of a Unix socket's path


def socket_path(engine: str) -> Path:
    """The socket of the service for an engine version (64 hexadecimal digits); makes the folder. Lock and log have the
    same name with other endings. Raises :class:`ServiceError` if the path is too long for a socket."""
    path = runtime_folder() / f"softgpu-{engine[:16]}.sock"
    if len(bytes(path)) > LONGEST:
        raise ServiceError(f"the path of the compile service's socket is too long: {path}")
    return path
