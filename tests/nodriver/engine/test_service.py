"""The compile service: answers, shared work, hostile messages, crashes, kills, start and end."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import lz4.block
import pytest
import zstandard

from softgpu.engine.cache import unsealed
from softgpu.engine.errors import CompileError, ServiceError
from softgpu.engine.options import Options
from softgpu.engine.service.client import Client, InvalidModule, UnsupportedByService
from softgpu.engine.service.protocol import (
    COMPILE_FIELDS,
    HEADER,
    MAGIC,
    MAX_PAYLOAD,
    UNPACK_FIELDS,
    Frame,
    FrameReader,
    Kind,
    LinkRequest,
    ProtocolError,
    Request,
    Status,
    UnpackRequest,
    decode,
    decode_request,
    receive,
)
from softgpu.engine.version import engine_version
from tessera.packed import Packing
from tests.nodriver.engine.services import Home, await_file, children_of, home_of_test, open_files

ENGINE = bytes.fromhex(engine_version())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    yield from home_of_test(tmp_path, monkeypatch)


def test_kernel_is_compiled_once_and_loads(home: Home) -> None:
    client = Client()
    log = home.folder / "log"
    ptx = f"count {log}".encode()
    path = client.compile(ptx, "first", Options((8, 4, 1), counts=True))
    assert path.parent == home.cache
    name = ctypes.cast((ctypes.c_uint64 * 16).in_dll(ctypes.CDLL(str(path)), "softgpu_kernel")[14], ctypes.c_char_p)
    assert name.value == b"first"
    assert client.compile(ptx, "first", Options((8, 4, 1), counts=True)) == path
    assert len(await_file(log)) == 1
    assert client.compile(ptx, "first") != path
    assert len(await_file(log)) == 2
    path.write_bytes(path.read_bytes()[:-1])
    assert unsealed(client.compile(ptx, "first", Options((8, 4, 1), counts=True)).read_bytes())
    assert len(await_file(log)) == 3


def test_module_is_described(home: Home) -> None:
    assert Client().describe(b"12345") == {"bytes": 5}
    assert Client().describe(b"12345") == {"bytes": 5}
    assert len(list(home.cache.glob("*.json"))) == 1


FAILURES: list[tuple[bytes, type[Exception], str]] = [
    (b"unsupported", UnsupportedByService, "kernel k: line 7: the engine does not compile frob.f32: no such thing"),
    (b"invalid", InvalidModule, "kernel k: line 3: expected a directive"),
    (b"defect", CompileError, "kernel k: KeyError: 'oh'"),
    (b"crash", CompileError, "kernel k: the compiler was ended by signal 11"),
]


def test_failures_are_texts_and_the_service_lives_on(home: Home) -> None:
    for ptx, error, message in FAILURES:
        with pytest.raises(error) as caught:
            Client().compile(ptx, "k")
        assert str(caught.value) == message
    assert Client().compile(b"", "k").exists()


def test_compilation_that_takes_too_long_is_stopped(home: Home) -> None:
    home.serve_with("--limit", "1")
    with pytest.raises(CompileError, match="took too long"):
        Client().compile(b"sleep 30", "k")
    assert Client().ping()["workers"] == 0


def test_client_stops_waiting_and_the_work_goes_on(home: Home) -> None:
    Client().ping()
    with pytest.raises(ServiceError, match="within 0.2 seconds"):
        Client(seconds=0.2).compile(b"sleep 0.6", "k")
    assert not list(home.cache.glob("*.so"))
    assert Client().compile(b"sleep 0.6", "k").exists()


def test_same_requests_at_once_are_one_compilation(home: Home) -> None:
    log = home.folder / "log"
    Client().ping()
    with ThreadPoolExecutor(8) as threads:
        paths = list(threads.map(lambda _: Client().compile(f"count {log} sleep 0.3".encode(), "k"), range(8)))
    assert len(set(paths)) == 1
    assert len(await_file(log)) == 1


def test_different_kernels_compile_at_once_in_few_workers(home: Home) -> None:
    home.serve_with("--workers", "3")
    Client().ping()
    start = time.monotonic()
    with ThreadPoolExecutor(6) as threads:
        paths = list(threads.map(lambda i: Client().compile(b"sleep 0.3", f"k{i}"), range(6)))
    assert len(set(paths)) == 6
    assert 0.6 <= time.monotonic() - start < 1.7
    assert len(children_of(home.process)) == 3


def test_module_stays_with_the_worker_that_knows_it(home: Home) -> None:
    home.serve_with("--workers", "2")
    logs = [home.folder / "a", home.folder / "b"]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda log: Client().compile(f"count {log} sleep 0.1".encode(), "k"), logs))
    for _ in range(3):
        for log in logs:
            Client().compile(f"count {log} sleep 0.1".encode(), f"k{time.monotonic()}")
    workers = [set(await_file(log, 4)) for log in logs]
    assert [len(found) for found in workers] == [1, 1] and workers[0] != workers[1]


def test_killed_worker_fails_one_kernel(home: Home) -> None:
    log = home.folder / "log"
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(Client().compile, f"count {log} sleep 20".encode(), "k")
        os.kill(int(await_file(log)[0]), signal.SIGKILL)
        with pytest.raises(CompileError, match="kernel k: the compiler was ended by signal 9"):
            answer.result()
    assert children_of(home.process) == []  # and no zombie is left


def test_killed_service_is_replaced_once(home: Home) -> None:
    log = home.folder / "log"
    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(Client().compile, f"count {log} sleep 0.5".encode(), "k")
        await_file(log)
        first = home.process
        home.kill()
        assert answer.result().exists()
    assert home.process not in (0, first)
    with ThreadPoolExecutor(1) as threads:
        log = home.folder / "second"
        answer = threads.submit(Client().compile, f"count {log} sleep 20".encode(), "k")
        for lines in (1, 2):
            worker = int(await_file(log, lines)[-1])
            home.kill()
            os.kill(worker, signal.SIGKILL)
        with pytest.raises(ServiceError, match="ended before it answered, twice"):
            answer.result()


def test_service_ends_when_idle_and_leaves_no_socket(home: Home) -> None:
    home.serve_with("--idle", "0.3")
    with socket.socket(socket.AF_UNIX) as silent:
        Client().compile(b"sleep 0.6", "k")  # longer than the idle time: work is not idleness
        silent.connect(str(home.socket))  # who only listens does not keep it
        assert home.process
        home.await_end()
        assert silent.recv(1) == b""
    assert not home.socket.exists()
    assert Client().ping()["process"] == home.process


def test_service_is_detached_and_keeps_nothing_of_ours(home: Home) -> None:
    kept = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(kept, True)
    Client().compile(b"", "k")
    os.close(kept)
    process = home.process
    for one in (process, *children_of(process)):
        own = {"/dev/null", "anon_inode:[eventpoll]", *[str(home.socket.with_suffix(e)) for e in (".log", ".lock")]}
        assert set(open_files(one).values()) <= own
        assert os.readlink(f"/proc/{one}/cwd") == "/"
        assert os.getsid(one) != os.getsid(0)
        assert len(list(Path(f"/proc/{one}/task").iterdir())) == 1  # forks are safe
    status = Path(f"/proc/{process}/status").read_text()
    assert "SigBlk:\t0000000000000000" in status
    assert f"PPid:\t{os.getpid()}\n" not in status
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_several_who_start_it_get_one_service(home: Home) -> None:
    with ThreadPoolExecutor(6) as threads:
        processes = set(threads.map(lambda _: Client().ping()["process"], range(6)))
    assert processes == {home.process}
    again = subprocess.run([str(home.python), "-P", "-m", "softgpu.engine.service"], timeout=20, check=False)
    assert again.returncode == 0 and home.process in processes


def test_socket_of_a_killed_service_does_not_matter(home: Home) -> None:
    Client().ping()
    home.kill()
    assert home.socket.exists()
    assert Client().ping()["process"] == home.process


@pytest.mark.parametrize("script, message", [
    ("echo no such module >&2; exit 1", "did not start; its log: no such module"),
    ("sleep 1", "did not start in time"),
])  # fmt: skip
def test_service_that_does_not_start(
    script: str, message: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.interpreter(script)
    monkeypatch.setattr("softgpu.engine.service.client.START_SECONDS", 0.5)
    with pytest.raises(ServiceError, match=message):
        Client().ping()


TEXT = b"a text that is packed " * 50


@pytest.mark.parametrize(("packing", "pack"), [
    (Packing.ZSTANDARD, zstandard.compress),
    (Packing.ZSTANDARD, zstandard.ZstdCompressor(write_content_size=False).compress),
    (Packing.LZ4, lambda text: lz4.block.compress(text, store_size=False)),
])  # fmt: skip
def test_images_are_unpacked(packing: Packing, pack: Callable[[bytes], bytes], home: Home) -> None:
    image = pack(TEXT)
    for _ in range(2):
        assert Client().unpack(image, packing, len(TEXT)) == TEXT
        assert len(list(home.cache.glob("*.ptx"))) == 1
    for data, size in ((image, len(TEXT) - 1), (image, len(TEXT) + 1), (image[:-3], len(TEXT)), (b"", 5), (image, 0),
                       (b"\xff" * 20, 100)):
        with pytest.raises(InvalidModule, match="packed image: "):
            Client().unpack(data, packing, size)


def test_a_frame_that_wants_much_memory_does_not_get_it(home: Home) -> None:
    frame = b"\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little") + b"\x01\x00\x00"
    with pytest.raises(InvalidModule, match="it has 1099511627776 bytes, not the 5 that it announces"):
        Client().unpack(frame, Packing.ZSTANDARD, 5)


def test_texts_are_linked(home: Home) -> None:
    head = b".version 8.0\n.target sm_80\n"
    one, two = head + b".visible .global .u32 a;\n", head + b".extern .global .u32 a;\n"
    assert Client().link([one]) == one
    assert Client().link([one, two]).count(b".u32 a;") == 1
    with pytest.raises(InvalidModule, match="link: multiple definition of 'a'"):
        Client().link([one, one])


def test_engine_of_another_version_is_refused(home: Home) -> None:
    Client().ping()
    request = Request(bytes(32), b"x", bytes(home.cache), "k")
    with pytest.raises(ServiceError, match="build it again"):
        Client()._ask(Kind.COMPILE, request.encode())


def request(**changes: object) -> bytes:
    """A good request with some of its fields set to something else."""
    good: dict[str, object] = {
        "engine": ENGINE, "x": 0, "y": 0, "z": 0, "flags": 0, "rounding": 0, "kernel": 1, "cache": 2, "zero": 0,
        "ptx": 3, "rest": b"k/cptx",
    }  # fmt: skip
    fields = {**good, **changes}
    return COMPILE_FIELDS.pack(*list(fields.values())[:-1]) + bytes(fields["rest"])  # type: ignore[arg-type, call-overload]


HOSTILE_REQUESTS = {
    "empty": b"",
    "short": request()[:60],
    "bytes missing": request()[:-1],
    "bytes too many": request() + b"x",
    "long name": request(kernel=1 << 17),
    "name beyond the end": request(kernel=1000),
    "long path": request(cache=5000),
    "all the PTX there is": request(ptx=(1 << 64) - 1),
    "sum wraps around": request(kernel=0, cache=0, ptx=(1 << 64) - 72),
    "reserved field": request(zero=1),
    "unknown flag": request(flags=1),
    "unknown rounding": request(rounding=2),
    "half a block": request(x=1),
    "huge block": request(x=1 << 31, y=1 << 31, z=4),
    "relative folder": request(rest=b"kc/ptx"),
    "no folder": request(cache=0, ptx=5),
    "zero in folder": request(kernel=0, cache=3, rest=b"/\0cptx"),
    "name is not UTF-8": request(rest=b"\xff/cptx"),
}
def packed(**changes: object) -> bytes:
    good: dict[str, object] = {"engine": ENGINE, "packing": 1, "cache": 2, "size": 3, "packed": 4, "rest": b"/cpack"}
    fields = {**good, **changes}
    return UNPACK_FIELDS.pack(*list(fields.values())[:-1]) + bytes(fields["rest"])  # type: ignore[arg-type, call-overload]


HOSTILE_IMAGES = {
    "empty": b"", "short": packed()[:55], "bytes missing": packed()[:-1], "bytes too many": packed() + b"x",
    "unknown packing": packed(packing=3), "no packing": packed(packing=0), "long path": packed(cache=5000),
    "all there is": packed(packed=(1 << 64) - 1), "sum wraps around": packed(cache=0, packed=(1 << 64) - 50),
    "huge": packed(size=1 << 40), "relative folder": packed(rest=b"c/pack"), "no folder": packed(cache=0, packed=6),
}  # fmt: skip
HOSTILE_LINKS = {"empty": b"", "no texts": ENGINE, "not ended": ENGINE + b"text"}
HOSTILE_FRAMES = {
    "text": b"GET / HTTP/1.1\r\n\r\n",
    "other version": HEADER.pack(MAGIC, 2, Kind.PING, 0),
    "too long": HEADER.pack(MAGIC, 1, Kind.COMPILE, MAX_PAYLOAD + 1),
    "longest number": HEADER.pack(MAGIC, 1, Kind.COMPILE, (1 << 64) - 1),
    "unknown kind": HEADER.pack(MAGIC, 1, 77, 0),
    "two at once": HEADER.pack(MAGIC, 1, Kind.PING, 0) * 2,
    **{f"request: {name}": Frame(Kind.COMPILE, payload).encode() for name, payload in HOSTILE_REQUESTS.items()},
    **{f"image: {name}": Frame(Kind.UNPACK, payload).encode() for name, payload in HOSTILE_IMAGES.items()},
    **{f"link: {name}": Frame(Kind.LINK, payload).encode() for name, payload in HOSTILE_LINKS.items()},
}


def test_hostile_messages_are_refused_and_harm_nobody_else(home: Home) -> None:
    Client().ping()
    for name, data in HOSTILE_FRAMES.items():
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5)
            connection.connect(str(home.socket))
            connection.sendall(data)
            reply = receive(connection)
            assert reply and reply.kind == Status.REFUSED, name
            assert connection.recv(1) == b"", name
    for data in (b"", HEADER.pack(MAGIC, 1, Kind.COMPILE, 1000) + b"x"):  # who hangs up in between
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(home.socket))
            connection.sendall(data)
    with socket.socket(socket.AF_UNIX) as impatient:  # a second request before the first is answered
        impatient.connect(str(home.socket))
        impatient.sendall(Frame(Kind.COMPILE, request(ptx=9, rest=b"k/csleep 0.2")).encode())
        time.sleep(0.05)
        impatient.sendall(Frame(Kind.PING, b"").encode())
        reply = receive(impatient)
        assert reply and reply.kind == Status.REFUSED
    assert Client().compile(b"", "k").exists()


@pytest.mark.parametrize("payload", HOSTILE_REQUESTS.values(), ids=HOSTILE_REQUESTS)
def test_hostile_requests_do_not_decode(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_request(payload)


def test_requests_and_frames_come_back_as_they_were(home: Home) -> None:
    one = Request(ENGINE, b"text", b"/folder", "kérnel", Options((2, 3, 4), True, True, 1))
    assert decode_request(one.encode()) == one
    image = UnpackRequest(ENGINE, Packing.LZ4, 77, b"packed", b"/folder")
    assert decode(Kind.UNPACK, image.encode()) == image
    link = LinkRequest(ENGINE, (b"one", b"", b"two"))
    assert decode(Kind.LINK, link.encode()) == link
    frame = Frame(Kind.COMPILE, one.encode())
    reader = FrameReader()
    data = frame.encode()
    assert [reader.feed(data[i:i + 1]) for i in range(len(data))] == [None] * (len(data) - 1) + [frame]


@pytest.mark.parametrize("reply", [
    b"", b"x" * 16, HEADER.pack(MAGIC, 1, 0, MAX_PAYLOAD + 1), HEADER.pack(MAGIC, 9, 0, 0), HEADER.pack(MAGIC, 1, 0, 9),
    HEADER.pack(MAGIC, 1, 99, 0),
])  # fmt: skip
def test_client_survives_a_hostile_service(
    reply: bytes, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("softgpu.engine.service.client.PARTING_SECONDS", 0.05)
    with socket.socket(socket.AF_UNIX) as listener, ThreadPoolExecutor(1) as threads:
        listener.bind(str(home.socket))
        listener.listen()

        def serve() -> None:
            with suppress(OSError):  # the listener is shut down
                while True:
                    with listener.accept()[0] as connection:
                        connection.recv(1 << 16)
                        connection.sendall(reply)

        threads.submit(serve)
        with pytest.raises(ServiceError):
            Client(seconds=2).ping()
        listener.shutdown(socket.SHUT_RDWR)


def test_folder_of_the_socket_must_be_private(home: Home) -> None:
    assert home.socket.parent.stat().st_mode & 0o777 == 0o700
    home.socket.parent.chmod(0o777)
    with pytest.raises(Exception, match="nobody else can write"):
        Client().ping()
    (home.runtime / "tessera").chmod(0o700)


def test_cache_that_cannot_be_used_does_not_lose_the_kernel(home: Home) -> None:
    (home.folder / "file").write_text("")
    client = Client(cache=home.folder / "file" / "cache")
    path = client.compile(b"", "k")
    assert unsealed(path.read_bytes())
    assert "cannot be used" in home.socket.with_suffix(".log").read_text()
    home.kill(signal.SIGTERM)
    assert not path.parent.exists()
