"""The cache on disk: damaged files of every kind, folders that cannot be used, several writers, removal by age."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from softgpu.engine.cache import DESCRIPTION, TRAILER, ObjectCache, description_key, object_key, sealed, unsealed
from softgpu.engine.options import Options
from softgpu.engine.target import TARGETS, host_target
from tessera.environment import CACHE
from tessera.private import UnsafeFolder, cache_folder, private_folder, runtime_folder

KEY = "ab" * 32
CONTENT = bytes(range(256)) * 40


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ObjectCache]:
    made = ObjectCache(tmp_path / "cache")
    yield made
    made.close()


def aged(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds, time.time() - seconds))


def test_what_is_put_is_found(cache: ObjectCache) -> None:
    assert cache.get(KEY) is None
    path = cache.put(KEY, CONTENT)
    assert path.parent == cache.directory and path.name == KEY + ".so"
    assert cache.get(KEY) == path
    assert cache.content(KEY, ".so") == CONTENT
    assert cache.content(KEY, DESCRIPTION) is None
    assert path.read_bytes().startswith(CONTENT)
    assert path.stat().st_mode & 0o777 == 0o600
    assert cache.directory.stat().st_mode & 0o777 == 0o700


def test_keys_differ_wherever_the_result_may() -> None:
    first, second = hashlib.sha256(b"a").digest(), hashlib.sha256(b"b").digest()
    options = [Options(), Options((1, 1, 1)), Options((11, 1, 1)), Options((1, 11, 1)), Options(counts=True),
               Options(logs=True), Options(rounding=1)]
    keys = [
        *[object_key(first, "k", one) for one in options],
        object_key(first, "k2", Options()), object_key(first, "k\n", Options()), object_key(second, "k", Options()),
        *[object_key(first, "k", Options(), target) for target in TARGETS if target != host_target()],
        description_key(first), description_key(second),
    ]  # fmt: skip
    assert len({*keys}) == len(keys)
    assert all(len(key) == 64 for key in keys)
    assert object_key(first, "k", Options()) == keys[0]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "one byte": lambda data: data[:1],
    "truncated": lambda data: data[:-1],
    "half": lambda data: data[:len(data) // 2],
    "trailer only": lambda data: data[-TRAILER.size:],
    "content only": lambda data: data[:-TRAILER.size],
    "bytes appended": lambda data: data + b"\0",
    "twice": lambda data: data + data,
    "zeros": lambda data: bytes(len(data)),
    "content changed": lambda data: data[:500] + bytes([data[500] ^ 1]) + data[501:],
    "digest changed": lambda data: data[:-48] + bytes([data[-48] ^ 1]) + data[-47:],
    "length changed": lambda data: data[:-16] + bytes([data[-16] ^ 1]) + data[-15:],
    "mark changed": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_files_are_noticed_and_replaced(
    damage: Callable[[bytes], bytes], cache: ObjectCache, caplog: pytest.LogCaptureFixture
) -> None:
    path = cache.put(KEY, CONTENT)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.get(KEY) is None
    assert "damaged" in caplog.text
    assert not path.exists()
    assert cache.put(KEY, CONTENT) == cache.get(KEY)


def test_seal_is_of_exactly_its_content() -> None:
    assert unsealed(sealed(b"")) == b""
    assert unsealed(sealed(sealed(b"x"))) == sealed(b"x")
    assert unsealed(b"") is None


def test_a_folder_in_a_files_place_is_no_file(cache: ObjectCache) -> None:
    cache.put(KEY, CONTENT).unlink()
    (cache.directory / (KEY + ".so")).mkdir()
    assert cache.get(KEY) is None
    path = cache.put(KEY, CONTENT)  # goes aside: a rename cannot replace a folder
    assert path.parent != cache.directory and unsealed(path.read_bytes()) == CONTENT


def test_folder_that_cannot_be_made_costs_nothing_but_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    cache = ObjectCache(tmp_path / "file" / "cache")
    path, second = cache.put(KEY, CONTENT), cache.put("cd" * 32, CONTENT)
    assert unsealed(path.read_bytes()) == CONTENT
    assert path.parent == second.parent and path.parent.stat().st_mode & 0o777 == 0o700
    assert "cannot be used" in caplog.text and cache.get(KEY) is None
    cache.close()
    assert not path.parent.exists()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o702])
def test_folder_that_others_can_write_to_is_not_read(mode: int, cache: ObjectCache) -> None:
    path = cache.put(KEY, CONTENT)
    cache.directory.chmod(mode)
    assert cache.get(KEY) is None
    aside = cache.put(KEY, CONTENT)
    assert aside.parent != cache.directory
    with pytest.raises(UnsafeFolder, match="nobody else can write"):
        private_folder(cache.directory)
    cache.directory.chmod(0o755)  # others may read
    assert cache.get(KEY) == path


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs the super-user")
def test_folder_of_another_user_is_not_read(cache: ObjectCache) -> None:
    cache.put(KEY, CONTENT)
    os.chown(cache.directory, 12345, 12345)
    assert cache.get(KEY) is None
    with pytest.raises(UnsafeFolder, match="of this user"):
        private_folder(cache.directory)


def test_full_disk_in_the_midst_of_a_file(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put("cd" * 32, b"x")
    write = ObjectCache._write

    def full(self: ObjectCache, folder: Path, name: str, data: bytes) -> Path:
        """A limit on the size of files cuts writing off as a full disk does."""
        if folder != cache.directory:
            return write(self, folder, name, data)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
        try:
            return write(self, folder, name, data)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    monkeypatch.setattr(ObjectCache, "_write", full)
    path = cache.put(KEY, CONTENT)
    assert path.parent != cache.directory and unsealed(path.read_bytes()) == CONTENT
    assert [entry.name for entry in cache.directory.iterdir()] == ["cd" * 32 + ".so"]  # nothing unfinished stays


def test_every_place_full_is_the_only_error(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Path] = []

    def full(self: ObjectCache, folder: Path, name: str, data: bytes) -> Path:
        tried.append(folder)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ObjectCache, "_write", full)
    with pytest.raises(OSError, match="No space"):
        cache.put(KEY, CONTENT)
    assert len(tried) == 3


def test_least_recently_used_files_go_first(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "cache", limit_bytes=10 * (1000 + TRAILER.size))
    paths = [cache.put(f"{i:064x}", bytes(1000)) for i in range(10)]
    for i, path in enumerate(paths):
        aged(path, 10_000 - i)
    assert cache.get(f"{0:064x}") == paths[0]  # used: now the youngest
    unfinished = [cache.directory / f".unfinished-{i}" for i in range(2)]
    for path in unfinished:
        path.write_bytes(b"")
    aged(unfinished[0], 4000)
    cache.trim()
    assert all(path.exists() for path in paths)  # at the limit, not above
    assert [path.exists() for path in unfinished] == [False, True]
    newest = cache.put(f"{10:064x}", bytes(1000))
    cache.trim(spare=newest)
    assert [path.exists() for path in paths] == [True, False, False, *[True] * 7]
    assert newest.exists()


def test_putting_trims_now_and_then(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "cache", limit_bytes=20_000)
    for i in range(150):
        cache.put(f"{i:064x}", bytes(1000))
    assert len(list(cache.directory.iterdir())) < 90


def test_removed_file_stays_usable_for_who_has_it_open(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "cache", limit_bytes=1)
    with cache.put(KEY, CONTENT).open("rb") as reader:
        cache.trim()
        assert cache.get(KEY) is None
        assert unsealed(reader.read()) == CONTENT


def test_several_writers_and_readers_and_removers(tmp_path: Path) -> None:
    keys = [f"{i:064x}" for i in range(5)]
    contents = {key: bytes([i]) * (50_000 + i) for i, key in enumerate(keys)}

    def work(number: int) -> None:
        cache = ObjectCache(tmp_path / "cache", limit_bytes=200_000)
        for turn in range(40):
            key = keys[(turn * 3 + number) % 5]
            path = cache.put(key, contents[key])
            with suppress(FileNotFoundError):  # another one removed it before it was read
                assert unsealed(path.read_bytes()) == contents[key]
            found = cache.content(key, ".so")
            assert found is None or found == contents[key]
            if turn % 8 == number:
                cache.trim()

    children = []
    for number in range(4):
        if (child := os.fork()) == 0:
            status = 1
            try:
                logging.disable()
                work(number)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert not list((tmp_path / "cache").glob(".unfinished-*"))
    left = ObjectCache(tmp_path / "cache")
    assert all(left.content(path.stem, ".so") == contents[path.stem] for path in left.directory.iterdir())


def test_folders_are_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE.name, str(tmp_path / "named"))
    assert cache_folder() == tmp_path / "named"
    monkeypatch.setenv(CACHE.name, "relative")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "tessera" / "softgpu"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "tessera" / "softgpu"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert runtime_folder() == tmp_path / "tessera"
    assert runtime_folder().stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert runtime_folder() == tmp_path / f"tessera-{os.geteuid()}"
    runtime_folder().chmod(0o777)
    with pytest.raises(UnsafeFolder):
        runtime_folder()
