"""Compiled kernels and descriptions of modules on disk, by content; ``docs/engine-cache.md`` is the format.

The C run-time (``runtime/client_cache.c``) reads the same files by the same keys, without Python. Files appear whole by
a rename, end in a digest of themselves, and may be removed at any time: a reader that has one open or loaded keeps it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import struct
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from softgpu.engine.options import Options
from softgpu.engine.target import Target, host_target
from softgpu.engine.version import abi_version, engine_version
from tessera.private import UnsafeFolder, cache_folder, private_folder

LOG = logging.getLogger(__name__)

LIMIT_BYTES = 1 << 30
"""Default for the size of the whole cache."""

KEPT = 0.9  # share of the limit that stays when the oldest files go
RECOUNT = 64  # files written between two looks at the folder's size
TOUCH_SECONDS = 60  # a file's time is not renewed more often than this
ABANDONED_SECONDS = 3600  # age at which an unfinished file is somebody's who died

TRAILER = struct.Struct("<32sQ8s")  # SHA-256 of the content, its length, and a mark
MARK = b"softgpu\x01"
OBJECT, DESCRIPTION, UNPACKED = ".so", ".json", ".ptx"


def object_key(ptx_digest: bytes, kernel: str, options: Options, target: Target | None = None) -> str:
    """The key of a compiled kernel: 64 hexadecimal digits. ``ptx_digest`` is the SHA-256 of the PTX text."""
    level = (target or host_target()).name
    return _key(f"object\n{_engine()}target {level}\nptx {ptx_digest.hex()}\n{options.text()}\nkernel {kernel}")


def description_key(ptx_digest: bytes) -> str:
    """The key of a module's description."""
    return _key(f"description\n{_engine()}ptx {ptx_digest.hex()}\n")


def unpacked_key(packed_digest: bytes, packing: int) -> str:
    """The key of what was packed, the same for every engine. ``packed_digest`` is the SHA-256 of the packed bytes."""
    return _key(f"unpacked\npacking {packing}\npacked {packed_digest.hex()}\n")


def _engine() -> str:
    return f"engine {engine_version()}\nabi {abi_version()}\n"


def _key(text: str) -> str:
    return hashlib.sha256(b"softgpu 1 " + text.encode()).hexdigest()


def sealed(content: bytes) -> bytes:
    """The content with its trailer, as it stands in a file."""
    return content + TRAILER.pack(hashlib.sha256(content).digest(), len(content), MARK)


def unsealed(data: bytes) -> bytes | None:
    """The content of a file's bytes; None if they are not exactly what :func:`sealed` made."""
    if len(data) < TRAILER.size:
        return None
    digest, length, mark = TRAILER.unpack_from(data, len(data) - TRAILER.size)
    content = data[:-TRAILER.size]
    whole = mark == MARK and length == len(content) and digest == hashlib.sha256(content).digest()
    return content if whole else None


class ObjectCache:
    """The files of one folder. ``directory`` is the user's cache unless another is given.

    A folder that cannot be used costs speed and not results: files then go to a private temporary folder, which
    :meth:`close` removes, with one warning in the log.
    """

    def __init__(self, directory: Path | None = None, limit_bytes: int = LIMIT_BYTES) -> None:
        self.directory = directory or cache_folder()
        self.limit_bytes = limit_bytes
        self._until_recount = 0
        self._temporary: list[Path] = []

    def get(self, key: str, kind: str = OBJECT) -> Path | None:
        """The file of that key, whole and just marked as used; None if there is none. A damaged one is removed."""
        path = self.directory / (key + kind)
        try:
            private_folder(self.directory)
            data = path.read_bytes()
        except (OSError, UnsafeFolder):
            return None
        if unsealed(data) is None:
            LOG.warning("%s is damaged and is made again", path)
            with suppress(OSError):
                path.unlink()
            return None
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > TOUCH_SECONDS:
                os.utime(path)
        return path

    def content(self, key: str, kind: str) -> bytes | None:
        """The content of that key's file, without the trailer; None if there is none."""
        path = self.get(key, kind)
        try:
            return unsealed(path.read_bytes()) if path else None
        except OSError:
            return None

    def put(self, key: str, content: bytes, kind: str = OBJECT) -> Path:
        """Store content and return the path of the file that holds it, in the cache or in a temporary folder.

        Raises ``OSError`` only if nowhere on the machine there is room.
        """
        data = sealed(content)
        try:
            path = self._write(private_folder(self.directory), key + kind, data)
        except (OSError, UnsafeFolder) as error:
            LOG.warning("the cache of compiled kernels cannot be used: %s", error)
            return self._put_aside(key + kind, data)
        self._until_recount -= 1
        if self._until_recount < 0:
            self._until_recount = RECOUNT
            self.trim(spare=path)
        return path

    def _write(self, folder: Path, name: str, data: bytes) -> Path:
        """Write a file under a temporary name and rename it; nothing stays behind when that fails."""
        descriptor, unfinished = tempfile.mkstemp(prefix=".unfinished-", dir=folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            os.rename(unfinished, folder / name)
        except BaseException:
            with suppress(OSError):
                os.unlink(unfinished)
            raise
        return folder / name

    def _put_aside(self, name: str, data: bytes) -> Path:
        places = [*self._temporary, Path(tempfile.gettempdir()), Path("/dev/shm")]
        failure: OSError | None = None
        for place in places:
            try:
                if place not in self._temporary:
                    place = Path(tempfile.mkdtemp(prefix="softgpu-objects-", dir=place))
                    self._temporary.append(place)
                return self._write(place, name, data)
            except OSError as error:
                failure = error
        raise failure or OSError("no place for a temporary file")

    def trim(self, spare: Path | None = None) -> None:
        """Remove the files that were not used for longest until the folder is well below its limit, but not ``spare``;
        remove unfinished files that nobody writes any more. Others may do the same at the same time."""
        files: list[tuple[float, int, str]] = []
        now = time.time()
        with suppress(OSError), os.scandir(self.directory) as entries:
            for entry in entries:
                with suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    if entry.name.endswith((OBJECT, DESCRIPTION, UNPACKED)):
                        files.append((found.st_mtime, found.st_size, entry.path))
                    elif entry.name.startswith(".unfinished-") and now - found.st_mtime > ABANDONED_SECONDS:
                        os.unlink(entry.path)
        total = sum(size for _, size, _ in files)
        if total <= self.limit_bytes:
            return
        for _, size, path in sorted(files):
            if total <= self.limit_bytes * KEPT:
                return
            if path == str(spare):
                continue
            with suppress(OSError):
                os.unlink(path)
            total -= size

    def close(self) -> None:
        """Remove the temporary folders; what is loaded from them stays loaded."""
        for folder in self._temporary:
            shutil.rmtree(folder, ignore_errors=True)
        self._temporary.clear()
