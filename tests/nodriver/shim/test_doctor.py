"""``tessera doctor``: for each thing that can be amiss, a program or a machine with which it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from shim import places
from softgpu.environ import FOLDER
from tessera.cli.doctor import elf, installation, machine
from tessera.cli.doctor.elf import ElfError
from tessera.cli.doctor.files import obstacle, program_file
from tessera.cli.doctor.findings import Finding, Topic
from tessera.cli.doctor.processes import Processes
from tessera.cli.doctor.report import Report, examine
from tessera.cli.reporters import doctor_json, doctor_text, output
from tessera.driver_api import functions
from tessera.environment import DEVICES, DISABLE, DRIVER, LOG
from tests import null_driver
from tests.documents import table_rows, topic_rows
from tests.material import ROOT
from tests.nodriver.shim import programs
from tools import native

SCHEMA = json.loads((ROOT / "docs" / "schema" / "doctor.json").read_text(encoding="utf-8"))
CLIENT = str(Path(__file__).with_name("client.py"))
SOFTWARE = FOLDER / "libcuda.so.1"
SECONDS = 60.0


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "LD_DEBUG", DEVICES.name, DISABLE.name, DRIVER.name, LOG.name):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def compiled(name: str, folder: Path, *flags: str) -> Path:
    made = folder / name
    if not made.exists():
        source = programs.FOLDER / f"{name}.c"
        subprocess.run([native.compiler(), source, "-o", made, *flags], check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def lookup(folder: Path) -> Path:
    return compiled("doctor_lookup", folder)


@pytest.fixture(scope="module")
def tomorrow(folder: Path) -> Path:
    """A driver that is newer than the list, and lacks most of it."""
    return compiled("doctor_driver", folder, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1")


def examined(*command: str | Path, fleet: str | None = "T4", driver: Path | None = None) -> Report:
    """What is found; both outputs of it are made, too."""
    found = examine(tuple([str(word) for word in command]), None if driver else fleet, driver)
    document = json.loads(json.dumps(doctor_json.document(found)))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    shown = output.plain(doctor_text.parts(found))
    assert all(finding.text in shown for finding in found.findings)
    return found


def texts(found: Sequence[Finding], topic: Topic) -> list[str]:
    return [finding.text for finding in found if finding.topic is topic]


def problems(found: Report) -> set[Topic]:
    return {finding.topic for finding in found.findings if finding.topic.problem}


def ways(found: Report) -> dict[str, tuple[str, ...]]:
    """Of the one process that used the driver."""
    assert found.program
    (process,) = found.program.using
    return {function.symbol: function.ways for function in process.functions}


def test_the_page_has_all_topics() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    written = table_rows(ROOT / "docs" / "doctor.md", "topic")
    assert written == topic_rows(), "to write it anew: .venv/bin/python -m tests.documents"


# Without a program.


def test_a_machine_where_all_is_well() -> None:
    found = examined()
    assert found.exit_code == 0 and problems(found) == set() and found.program is None
    assert found.driver and found.driver.software and found.driver.why == "--fleet T4"
    assert [(gpu.name, gpu.capability) for gpu in found.driver.devices] == [("Tesla T4", "7.5")]
    assert found.driver.lacks == found.driver.unlisted == ()
    assert all(part.built for part in found.installation.parts)
    assert found.installation.versions["records"] == "1"
    assert texts(found.findings, Topic.SOFTWARE)


def test_a_driver_that_is_not_as_old_as_the_list(tomorrow: Path) -> None:
    found = examined(driver=tomorrow)
    assert found.exit_code == 0 and found.driver and found.driver.version == "14.0"
    assert found.driver.unlisted == ("cuTomorrow",) and found.driver.lacks is not None
    assert len(found.driver.lacks) == len(functions()) - 11
    assert found.driver.devices[0].name == "GPU 0" and found.driver.software is False
    assert "cuTomorrow" in texts(found.findings, Topic.NEWER_DRIVER)[0]
    assert texts(found.findings, Topic.OLDER_DRIVER) and not texts(found.findings, Topic.SOFTWARE)


def test_no_driver(tmp_path: Path, lookup: Path) -> None:
    (tmp_path / "text").write_text("no driver")
    found = examined(lookup, "libcuda.so.1", "cuInit", driver=tmp_path / "text")
    assert found.exit_code == 4 and found.program is None
    assert texts(found.findings, Topic.NO_DRIVER) == [f"{tmp_path / 'text'} cannot be opened as a library"]
    assert "was not run" in texts(found.findings, Topic.NOT_RUN)[0]


def test_no_real_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tessera.cli.inventory.find", lambda: None)
    found = examined(fleet="cuda:0")
    assert found.exit_code == 4 and found.driver is None
    assert "no driver of NVIDIA is found" in texts(found.findings, Topic.NO_DRIVER)[0]


def test_parts_that_are_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "PRELOAD", tmp_path / "lib" / "libcuda.so.1")
    findings: list[Finding] = []
    assert [part.built for part in installation.look(findings).parts] == [False, False, True]
    assert f"{tmp_path / 'lib' / 'libcuda.so.1'} is not there: run" in texts(findings, Topic.NOT_BUILT)[0]
    assert len(texts(findings, Topic.NOT_BUILT)) == 2


def test_a_folder_for_sockets_that_others_can_write_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tessera").mkdir()
    (tmp_path / "tessera").chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    findings: list[Finding] = []
    machine.limits(findings)
    assert "nobody else can write to" in texts(findings, Topic.LIMIT)[0] and len(findings) == 1


def test_variables(tmp_path: Path) -> None:
    innocent = compiled("doctor_lookup", tmp_path)
    findings: list[Finding] = []
    found = machine.variables({
        "LD_PRELOAD": f"{SOFTWARE}:{innocent} {places.PRELOAD} /no/such", "LD_BIND_NOW": "1", DISABLE.name: "1",
        "CUDA_INJECTION64_PATH": "/profiler", LOG.name: "relative", "HOME": "/",
    }, findings)
    assert {variable.name for variable in found} == {"LD_PRELOAD", DISABLE.name, LOG.name, "CUDA_INJECTION64_PATH"}
    assert len(texts(findings, Topic.DISABLED)) == 1
    assert [f"{SOFTWARE}, which has 672 functions" in text for text in texts(findings, Topic.INTERPOSED)] == [True]
    said = texts(findings, Topic.VARIABLE)
    for part in (f"names {innocent}: it comes behind", "has Tessera's library already", "/no/such, which cannot be",
                 "/profiler: the driver itself", "no absolute path"):
        assert len([text for text in said if part in text]) == 1, (part, said)


# With a program.


def test_a_program_that_is_linked(folder: Path) -> None:
    program = programs.linked("doctor_linked", folder)
    found = examined(program)
    assert found.exit_code == 0 and found.program and found.program.exit_code == 0
    assert set(ways(found)) == {"cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemAlloc_v2"}
    assert set(ways(found).values()) == {("linked",)}
    (process,) = found.program.using
    records = {function.symbol: (function.kind, function.records) for function in process.functions}
    assert records["cuMemAlloc_v2"] == ("track", 1) and records["cuCtxSetCurrent"] == ("pass", 0)
    assert process.driver == str(SOFTWARE) and process.driver_version == "13.0" and process.program == str(program)


@pytest.mark.parametrize("library", ["libcuda.so.1", str(SOFTWARE)])
def test_a_program_that_looks_up(lookup: Path, library: str) -> None:
    found = examined(lookup, library, "cuInit", "cuMemAlloc_v2")
    assert found.exit_code == 0
    assert ways(found) == {"cuInit": ("dlsym",), "cuMemAlloc_v2": ("dlsym",)}


def test_a_program_that_asks_the_driver(lookup: Path) -> None:
    found = examined(lookup, "libcuda.so.1", "cuInit", ":cuDevicePrimaryCtxRetain", ":cuMemAlloc", ":cuGetProcAddress")
    assert found.exit_code == 0
    assert ways(found) == {"cuInit": ("dlsym",), "cuGetProcAddress_v2": ("dlsym", "proc_address"),
                           "cuDevicePrimaryCtxRetain": ("proc_address",), "cuMemAlloc_v2": ("proc_address",)}
    assert found.program and found.program.using[0].records > 0
    shown = " ".join(output.plain(doctor_text.parts(found)).split())
    assert "asked the driver with cuGetProcAddress_v2; the newest form is of CUDA 12.0" in shown


def test_a_program_that_asks_for_private_functions(lookup: Path) -> None:
    found = examined(lookup, "libcuda.so.1", "cuInit", "table")
    assert found.exit_code == 0 and "1 times" in texts(found.findings, Topic.EXPORT_TABLES)[0]


@pytest.mark.parametrize("words", [["cuInit", "cuTomorrow"], ["cuInit", ":cuTomorrow"]])
def test_a_function_that_is_not_in_the_list(lookup: Path, tomorrow: Path, words: list[str]) -> None:
    found = examined(lookup, "libcuda.so.1", *words, driver=tomorrow)
    assert found.exit_code == 1 and problems(found) == {Topic.UNSEEN} and found.program
    assert found.program.exit_code == 0 and found.program.using[0].unlisted == ("cuTomorrow",)
    assert "cuTomorrow" in texts(found.findings, Topic.UNSEEN)[0]


def test_another_driver_by_its_path(lookup: Path) -> None:
    other = null_driver.build()
    found = examined(lookup, other, "cuInit")
    assert found.exit_code == 1 and problems(found) == {Topic.UNSEEN, Topic.NO_CALL}
    assert texts(found.findings, Topic.UNSEEN) == [
        f"cuInit was looked up in {other}, which is not the driver {SOFTWARE}: calls there are not seen"]
    assert "elsewhere than in the driver" in texts(found.findings, Topic.NO_CALL)[0]


def test_a_static_program(folder: Path) -> None:
    program = compiled("doctor_static", folder, "-static", "-nostdlib")
    found = examined(program)
    assert found.exit_code == 1 and problems(found) == {Topic.OUT_OF_REACH, Topic.NO_CALL} and found.program
    assert found.program.exit_code == 0
    assert texts(found.findings, Topic.OUT_OF_REACH) == [f"{program} has no library under it: it is linked statically"]


def test_a_program_that_calls_nothing(folder: Path) -> None:
    assert "perhaps it uses no GPU" in texts(examined("true").findings, Topic.NO_CALL)[0]
    found = examined(programs.linked("doctor_linked", folder), "nothing")
    assert "linked with the driver, and has not come to call it" in texts(found.findings, Topic.NO_CALL)[0]


def test_tessera_is_disabled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DISABLE.name, "1")
    found = examined("sh", "-c", "exit 3")
    assert found.exit_code == 1 and problems(found) == {Topic.DISABLED}
    assert found.program and found.program.exit_code == 3 and found.program.using == ()


def test_a_program_that_cannot_be_run(tmp_path: Path) -> None:
    found = examined(tmp_path / "nothing")
    assert found.exit_code == 1 and texts(found.findings, Topic.NOT_RUN) == [
        f"{tmp_path / 'nothing'}: there is no such program"]
    assert found.program and found.program.exit_code is None and found.program.file is None


@pytest.mark.parametrize("mode, topic, said", [
    ("lossy", Topic.LOST, "5 records found no room, 101 are there; it said anew what there is 1 times"),
    ("garbage", Topic.BROKEN, "what it wrote into its ring is no records"),
])
def test_records_that_are_missing(mode: str, topic: Topic, said: str) -> None:
    found = examined("sh", "-c", f"exec '{sys.executable}' '{CLIENT}' {mode} 100 </dev/null")
    assert found.exit_code == 1 and problems(found) == {topic} and said in texts(found.findings, topic)[0]


def test_somebody_who_is_not_let_in() -> None:
    program = ("import os, socket\npeer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
               "peer.connect(os.environ['TESSERA_SOCKET'])\npeer.send(b'x' * 500)\npeer.recv(100)")
    found = examined(sys.executable, "-c", program)
    assert problems(found) == {Topic.REFUSED, Topic.NO_CALL}


def test_the_librarys_own_trouble(folder: Path) -> None:
    """A process is told of a driver that is not there."""
    program = programs.linked("doctor_linked", folder)
    found = examined("sh", "-c", f"{DRIVER.name}=nowhere '{program}'; {DRIVER.name}=nowhere '{program}'")
    assert problems(found) == {Topic.LIBRARY, Topic.NO_CALL}
    said = texts(found.findings, Topic.LIBRARY)
    assert f"{DRIVER.name}=nowhere is no absolute path of a driver (2 times)" in said
    assert "the library met with trouble" in texts(found.findings, Topic.NO_CALL)[0]


# The command.


def command(*words: str | Path, before: str = "") -> subprocess.CompletedProcess[str]:
    line = ["sh", "-c", f'{before} exec "$@"', "sh", sys.executable, "-m", "tessera", "doctor", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=ROOT)


def test_the_programs_output_is_not_the_commands() -> None:
    done = command("--fleet", "T4", "--json", "--", "sh", "-c", "echo said; exit 5")
    assert done.returncode == 1 and done.stderr == "said\n"
    document: Any = json.loads(done.stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert document["program"]["exit_code"] == 5 and document["program"]["command"][0] == "sh"


def test_text_and_limits_of_the_system() -> None:
    done = command("--fleet", "T4", before="ulimit -n 64; ulimit -f 1000;")
    assert done.returncode == 1, done.stderr
    assert "limit  open files: 64, and 256 are needed" in done.stdout
    assert "2 things are amiss" in done.stdout


@pytest.mark.parametrize("words, code, said", [
    (["--fleet", "nonsense"], 3, "nonsense"),
    (["--fleet", "T4", "--driver", "/x"], 2, "leave one of them out"),
])
def test_what_cannot_be_asked(words: list[str], code: int, said: str) -> None:
    done = command(*words)
    assert done.returncode == code and said in done.stderr and done.stdout == ""


# Parts.


def test_processes_with_and_without_the_library() -> None:
    """A shell with the library starts one without, which has a driver."""
    inner = f"import ctypes, sys; ctypes.CDLL('{SOFTWARE}'); print('ready', flush=True); sys.stdin.read()"
    outer = ["bash", "-c", f'env -i "{sys.executable}" -c "{inner}"; true']
    environment = {**os.environ, "LD_PRELOAD": str(places.PRELOAD)}
    with subprocess.Popen(outer, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as program:
        assert program.stdout and program.stdin and program.stdout.readline() == "ready\n"
        processes = Processes()
        processes.look(program.pid)
        program.stdin.close()
    shell, python = processes.stop()
    assert shell.obstacle is None and shell.drivers == set() and shell.process == program.pid
    assert python.obstacle == "its environment has no LD_PRELOAD with the library"
    assert python.drivers == {str(SOFTWARE)}
    processes.look()  # they are gone
    assert len(processes.stop()) == 2


def test_obstacles(folder: Path, tmp_path: Path, lookup: Path) -> None:
    user, group = os.getuid(), os.getgid()
    assert obstacle(lookup, user, group) is None
    foreign = tmp_path / "foreign"
    foreign.write_bytes(lookup.read_bytes())
    foreign.chmod(0o4755)
    assert obstacle(foreign, user, group) is None
    assert obstacle(foreign, user + 1, group) == "it runs with other rights than whoever starts it (setuid)"
    foreign.chmod(0o2755)
    assert obstacle(foreign, user, group + 1) == "it runs with other rights than whoever starts it (setuid)"
    musl = tmp_path / "musl"
    musl.write_bytes(lookup.read_bytes().replace(b"/lib64/ld-linux-x86-64.so.2", b"/lib/ld-musl-x86_64.so.1\0\0\0"))
    assert obstacle(musl, user, group) == "its loader is /lib/ld-musl-x86_64.so.1, not that of glibc"
    arm = tmp_path / "arm"
    arm.write_bytes(lookup.read_bytes()[:18] + b"\xb7" + lookup.read_bytes()[19:])
    assert obstacle(arm, user, group) == "it is no program for x86-64"


def test_the_executable_of_a_script(tmp_path: Path) -> None:
    for name, interpreter in (("outer", tmp_path / "inner"), ("inner", "/bin/sh"), ("loop", tmp_path / "loop")):
        (tmp_path / name).write_text(f"#!{interpreter} -x\n")
        (tmp_path / name).chmod(0o755)
    assert program_file(str(tmp_path / "outer")) == str(Path("/bin/sh").resolve())
    assert program_file(str(tmp_path / "loop")) is None and program_file("no-such-program") is None


def test_elf_files(tmp_path: Path) -> None:
    found = elf.read(SOFTWARE)
    assert {function.symbol for function in functions()} <= found.defines
    assert any(name.startswith("libc.so") for name in found.needed) and "malloc" in found.imports
    data = compiled("doctor_lookup", tmp_path).read_bytes()
    whole, path = elf.read(tmp_path / "doctor_lookup"), tmp_path / "part"
    assert "dlsym" in whole.imports and whole.interpreter == "/lib64/ld-linux-x86-64.so.2"
    for length in [*range(64), *range(64, len(data), 97)]:
        path.write_bytes(data[:length])
        with pytest.raises(ElfError, match="no ELF file" if length < 4 else "cut off"):
            elf.read(path)
    for position in range(64):  # of the head, any byte may be anything
        path.write_bytes(data[:position] + b"\xff" + data[position + 1:])
        try:
            elf.read(path)
        except ElfError as error:
            assert str(path) in str(error)
