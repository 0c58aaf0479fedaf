"""The C client: the same keys and rules as in Python, loads from the cache, and a service that a program does not
notice."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from softgpu.engine.cache import ObjectCache, description_key, object_key
from softgpu.engine.options import Options
from softgpu.engine.service.client import Client
from softgpu.engine.service.protocol import HEADER, MAGIC
from softgpu.engine.target import host_target
from softgpu.engine.version import write_info
from tests.material import ROOT
from tests.nodriver.engine.services import Home, await_file, children_of, home_of_test, open_files
from tests.nodriver.engine.test_cache import DAMAGES
from tools.native import FLAGS, compiler

RUNTIME = ROOT / "softgpu" / "engine" / "runtime"
ANY = ("0", "0", "0", "0", "0")


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test program, with the client's sources compiled in and the engine's file beside it."""
    path = tmp_path_factory.mktemp("client") / "client_test"
    sources = [Path(__file__).parent / "c" / "client_test.c", *RUNTIME.glob("client*.c"), RUNTIME / "sha256.c"]
    subprocess.run([compiler(), *FLAGS, f"-I{RUNTIME}", "-o", path, *sources, "-ldl"], check=True, timeout=60)
    write_info(path.parent)
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    yield from home_of_test(tmp_path, monkeypatch)


class Caller:
    """Runs the test program on a PTX text."""

    def __init__(self, program: Path, home: Home) -> None:
        self.program = program
        self.ptx = home.folder / "module.ptx"

    def __call__(self, verb: str, ptx: str, *words: str, wrap: tuple[str, ...] = (), **environment: str) -> list[str]:
        return self.start(verb, ptx, *words, wrap=wrap, **environment).communicate(timeout=30)[0].splitlines()

    def start(
        self, verb: str, ptx: str, *words: str, wrap: tuple[str, ...] = (), **environment: str
    ) -> subprocess.Popen[str]:
        self.ptx.write_text(ptx)
        command = [*wrap, str(self.program), verb, str(self.ptx), *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})


@pytest.fixture
def call(program: Path, home: Home) -> Caller:
    return Caller(program, home)


NO_TRACE = "files 0 children 0 signals 0"


def test_level_is_the_one_that_llvm_sees(program: Path) -> None:
    assert subprocess.check_output([program, "level"], text=True).strip() == host_target().name


@pytest.mark.parametrize("size", [0, 1, 55, 56, 63, 64, 65, 119, 120, 127, 128, 1000, 100_000])
def test_digests(size: int, call: Caller) -> None:
    text = "".join(chr(33 + i * i % 90) for i in range(size))
    assert call("digest", text) == [hashlib.sha256(text.encode()).hexdigest()]


def test_keys_are_those_of_python(call: Caller, home: Home) -> None:
    digest = hashlib.sha256(b"text").digest()
    for kernel in ("k", "_Z3addPfS_i", "k$1%", "n" * 5000):
        for options, words in (
            (Options(), ANY),
            (Options((128, 1, 1), counts=True), ("128", "1", "1", "2", "0")),
            (Options((4, 2, 8), logs=True, rounding=1), ("4", "2", "8", "4", "1")),
            (Options(None, True, True), ("0", "0", "0", "6", "0")),
        ):
            expected = home.cache / f"{object_key(digest, kernel, options)}.so"
            assert call("file", "text", kernel, *words) == [str(expected)]
    assert call("describes", "text") == [str(home.cache / f"{description_key(digest)}.json")]


def test_cache_folder_is_that_of_python(call: Caller, tmp_path: Path) -> None:
    name = object_key(hashlib.sha256(b"").digest(), "k", Options()) + ".so"
    none = {"SOFTGPU_CACHE": "", "XDG_CACHE_HOME": "", "HOME": str(tmp_path)}
    for environment, folder in (
        (none, tmp_path / ".cache/tessera/softgpu"),
        ({**none, "XDG_CACHE_HOME": "/a"}, Path("/a/tessera/softgpu")),
        ({**none, "SOFTGPU_CACHE": "relative"}, tmp_path / ".cache/tessera/softgpu"),
    ):
        assert call("file", "", "k", *ANY, **environment) == [str(folder / name)]


def test_kernel_is_compiled_once_then_loaded_without_a_service(call: Caller, home: Home) -> None:
    log = home.folder / "log"
    ptx = f"count {log}"
    assert call("cached", ptx, "k", *ANY) == ["no"]
    assert call("load", ptx, "k", *ANY) == ["0 k", NO_TRACE]
    assert call("describe", ptx) == [f'0 {{"bytes":{len(ptx)}}}']
    home.kill()
    home.interpreter("exit 1")
    assert call("load", ptx, "k", *ANY) == ["0 k", NO_TRACE]
    assert call("describe", ptx) == [f'0 {{"bytes":{len(ptx)}}}']
    answer, microseconds = call("cached", ptx, "k", *ANY)[0].split()
    assert answer == "yes" and float(microseconds) < 2000
    assert len(await_file(log)) == 1


def test_a_file_in_use_is_marked_as_used(call: Caller, home: Home) -> None:
    call("load", "", "k", *ANY)
    [path] = home.cache.glob("*.so")
    old = time.time() - 1000
    os.utime(path, (old, old))
    call("load", "", "k", *ANY)
    assert path.stat().st_mtime > old + 900


def test_damaged_files_are_compiled_anew(call: Caller, home: Home) -> None:
    log = home.folder / "log"
    call("load", f"count {log}", "k", *ANY)
    [path] = home.cache.glob("*.so")
    whole = path.read_bytes()
    for count, (name, damage) in enumerate(DAMAGES.items()):
        path.write_bytes(damage(whole))
        assert call("cached", f"count {log}", "k", *ANY) == ["no"], name
        assert not path.exists()
        path.write_bytes(damage(whole))
        assert call("load", f"count {log}", "k", *ANY) == ["0 k", NO_TRACE], name
        assert path.read_bytes() == whole
        assert len(await_file(log)) == count + 2


def test_file_of_another_kernel_is_not_taken_for_it(call: Caller, home: Home) -> None:
    call("load", "", "one", *ANY)
    [one] = home.cache.glob("*.so")
    call("load", "", "two", *ANY)
    [two] = [path for path in home.cache.glob("*.so") if path != one]
    two.write_bytes(one.read_bytes())
    answer = call("load", "", "two", *ANY)[0]
    assert answer.startswith("3 ") and "is not a compiled kernel named two" in answer


def test_folder_that_others_can_write_to_is_not_loaded_from(call: Caller, home: Home) -> None:
    call("load", "", "k", *ANY)
    home.cache.chmod(0o777)
    assert call("cached", "", "k", *ANY) == ["no"]
    assert call("load", "", "k", *ANY) == ["0 k", NO_TRACE]  # by way of a temporary file
    assert "nobody else can write" in home.socket.with_suffix(".log").read_text()
    (home.runtime / "tessera").chmod(0o770)
    answer = call("load", "", "k", *ANY)[0]
    assert answer.startswith("5 ") and "nobody else can write" in answer
    (home.runtime / "tessera").chmod(0o700)
    home.cache.chmod(0o700)


def test_full_disk_does_not_lose_the_kernel(call: Caller, home: Home) -> None:
    home.cache.write_text("a file in the folder's place")
    assert call("load", "", "k", *ANY) == ["0 k", NO_TRACE]


def test_failures_are_texts(call: Caller) -> None:
    for ptx, answer in (
        ("unsupported", "1 kernel k: line 7: the engine does not compile frob.f32: no such thing"),
        ("invalid", "2 kernel k: line 3: expected a directive"),
        ("crash", "3 kernel k: the compiler was ended by signal 11"),
    ):
        assert call("load", ptx, "k", *ANY) == [answer, NO_TRACE]


def test_versions_that_differ_are_refused(call: Caller, program: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    call.program = copy / program.name
    call.program.write_bytes(program.read_bytes())
    call.program.chmod(0o755)
    assert "engine-info is missing" in call("load", "", "k", *ANY)[0]
    (copy / "engine-info").write_text(f"engine {'0' * 64}\npython /nowhere\n")
    answer = call("load", "", "k", *ANY)[0]
    assert answer.startswith("4 ") and "build it again" in answer
    for lock in (tmp_path / "run" / "tessera").glob("*-0000000000000000.lock"):
        os.kill(int(lock.read_text()), signal.SIGTERM)


def test_deadlines(call: Caller, home: Home) -> None:
    assert call("load", "sleep 0.5", "k", *ANY, ANSWER="100")[0] == \
        "6 the compile service did not answer within 0 seconds, for kernel k"
    home.kill(signal.SIGTERM)
    home.interpreter("sleep 1")
    assert "6 the compile service did not start in time" in call("load", "", "k", *ANY, START="100")[0]
    home.interpreter("echo no module >&2; exit 1")
    assert "5 the compile service did not start; its log: no module" in call("load", "", "k", *ANY)[0]
    home.python.unlink()
    answer, traces = call("load", "", "k", *ANY)
    assert answer.startswith("5 ") and "No such file or directory" in answer and traces == NO_TRACE


def test_service_that_c_started_keeps_nothing_of_the_program(call: Caller, home: Home) -> None:
    closed = ("/bin/sh", "-c", 'trap "" USR1 CHLD; exec 7</etc/passwd 8<&0 0<&-; exec "$@"', "sh")
    assert call("load", "", "k", *ANY, wrap=closed, PYTHONHOME="/nowhere", LD_AUDIT="")[0] == "0 k"
    process = home.process
    for one in (process, *children_of(process)):
        links = open_files(one)
        assert [links[i] for i in (0, 1)] == ["/dev/null"] * 2
        own = {"/dev/null", "anon_inode:[eventpoll]", *[str(home.socket.with_suffix(e)) for e in (".log", ".lock")]}
        assert set(links.values()) <= own
        environment = Path(f"/proc/{one}/environ").read_bytes()
        assert b"PYTHONHOME" not in environment and b"LD_AUDIT" not in environment
        assert os.getsid(one) != os.getsid(0)
        assert len(list(Path(f"/proc/{one}/task").iterdir())) == 1  # forks are safe
    status = Path(f"/proc/{process}/status").read_text()
    ignored = int(status.split("SigIgn:\t")[1].split()[0], 16)
    assert not ignored >> (signal.SIGUSR1 - 1) & 1 and "SigBlk:\t0000000000000000" in status


def test_many_threads_and_programs_get_one_service(call: Caller, home: Home) -> None:
    log = home.folder / "log"
    programs = [call.start("threads", f"count {log} sleep 0.1", "8") for _ in range(3)]
    assert [program.communicate(timeout=30)[0] for program in programs] == ["failures 0\n"] * 3
    assert len(await_file(log, 2)) == 2
    assert Client().ping()["process"] == home.process


def test_service_killed_while_it_compiles(call: Caller, home: Home) -> None:
    log = home.folder / "log"
    program = call.start("load", f"count {log} sleep 0.4", "k", *ANY)
    await_file(log)
    home.kill()
    assert program.communicate(timeout=30)[0].splitlines() == ["0 k", NO_TRACE]
    log = home.folder / "second"
    program = call.start("load", f"count {log} sleep 20", "k", *ANY)
    for lines in (1, 2):
        worker = int(await_file(log, lines)[-1])
        home.kill()
        os.kill(worker, signal.SIGKILL)
    assert "5 the compile service ended before it answered, twice" in program.communicate(timeout=30)[0]


@pytest.mark.parametrize("reply", [
    b"x" * 16, b"x" * 1000, HEADER.pack(MAGIC, 1, 0, 1 << 40), HEADER.pack(MAGIC, 9, 0, 0), HEADER.pack(MAGIC, 1, 0, 9),
    HEADER.pack(MAGIC, 1, 99, 0), HEADER.pack(MAGIC, 1, 0, 0), HEADER.pack(MAGIC, 1, 0, 4) + b"/a\0b",
    HEADER.pack(MAGIC, 1, 0, 9) + b"/dev/zero", HEADER.pack(MAGIC, 1, 0, 5) + b"where",
])  # fmt: skip
def test_client_survives_a_hostile_service(reply: bytes, call: Caller, home: Home) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home.socket))
        listener.listen()
        listener.settimeout(0.05)
        program = call.start("load", "", "k", *ANY)
        while program.poll() is None:
            try:
                with listener.accept()[0] as connection:
                    connection.recv(1 << 16)
                    connection.sendall(reply)
            except TimeoutError:
                continue
        assert program.communicate()[0][:2] in ("3 ", "5 ")


def test_removed_file_stays_loaded(call: Caller, home: Home) -> None:
    call("load", "", "k", *ANY)
    ObjectCache(home.cache, limit_bytes=1).trim()
    assert not list(home.cache.glob("*.so"))
    assert call("load", "", "k", *ANY) == ["0 k", NO_TRACE]
