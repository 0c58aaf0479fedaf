"""``tessera run``: the program is as it would be without, and what became of its records is said."""

from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from shim.places import PRELOAD
from softgpu.environ import FOLDER
from tessera.environment import DEVICES, DISABLE, DRIVER, SOCKET
from tests.material import ROOT

SCHEMA = json.loads((ROOT / "docs" / "schema" / "run.json").read_text(encoding="utf-8"))
CLIENT = str(Path(__file__).with_name("client.py"))
SECONDS = 60.0
NO_CALL = "tessera: the program called no function of the CUDA driver, so there are no records\n"
COMMAND = ("import sys\nfrom tessera.cli import under_shim\nunder_shim.LINGER_SECONDS = {linger}\n"
           "from tessera.cli.app import main\nmain()")


def command(*words: str, linger: float = 5) -> list[str]:
    return [sys.executable, "-c", COMMAND.format(linger=linger), "run", "--fleet", "T4", *words]


def environment(**more: str) -> dict[str, str]:
    found = {**os.environ, "PYTHONPATH": str(ROOT), **more}
    found.pop(DEVICES.name, None)
    return found


def run(*words: str, linger: float = 5, text: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words, linger=linger), env=environment(**more), capture_output=True, text=True,
                          input=text, timeout=SECONDS, check=False)


def client(*words: str) -> list[str]:
    return ["--", sys.executable, CLIENT, *words]


def reported(path: Path) -> Any:
    found = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    return found


@pytest.mark.parametrize("program, code", [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -9 $$", 137)])
def test_the_exit_code_is_the_programs(program: str, code: int) -> None:
    done = run("--", "sh", "-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", NO_CALL)


def test_what_cannot_be_started_has_the_codes_of_shells(tmp_path: Path) -> None:
    missing = run("--", "no-such-program-anywhere", "x")
    assert missing.returncode == 127
    assert missing.stderr == "tessera: no-such-program-anywhere: there is no such program\n"
    (tmp_path / "text").write_text("no program")
    for path in (tmp_path, tmp_path / "text"):
        done = run("--", str(path))
        assert done.returncode == 126
        assert done.stderr == f"tessera: {path} cannot be started: Permission denied\n"
    (tmp_path / "text").chmod(0o755)
    done = run("--", str(tmp_path / "text"))
    assert done.returncode == 126
    assert done.stderr == f"tessera: {tmp_path / 'text'} cannot be started: Exec format error\n"


def test_input_and_output_are_the_programs_own() -> None:
    done = run("sh", "-c", "cat; echo said >&2", text="given")  # also without --
    assert (done.stdout, done.stderr) == ("given", "said\n" + NO_CALL)


@pytest.mark.parametrize("words, code, said", [
    ([], 2, "no program to run"),
    (["--transport", "pigeon", "--", "true"], 2, "--transport pigeon: there are ipc, tcp"),
    (["--driver", "/no/such", "--", "true"], 2, "leave one of them out"),
    (["--report", "/no/such/folder/file", "--", "echo", "started"], 3, "--report /no/such/folder/file: No such file"),
    (["--fleet", "nonsense", "--", "echo", "started"], 3, "nonsense"),
])
def test_what_cannot_be_is_said_before_the_program_starts(words: list[str], code: int, said: str) -> None:
    done = run(*words)
    assert done.returncode == code and said in done.stderr and done.stdout == ""


def test_signals_reach_the_program() -> None:
    script = "trap 'echo term; exit 5' TERM; trap 'echo usr1' USR1; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen(command("--", "bash", "-c", script), env=environment(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        deadline = threading.Timer(SECONDS, process.kill)
        deadline.start()
        assert process.stdout
        for number, said in ((None, "ready"), (signal.SIGUSR1, "usr1"), (signal.SIGTERM, "term")):
            if number is not None:
                process.send_signal(number)
            assert process.stdout.readline() == f"{said}\n"
        assert process.wait(SECONDS) == 5
        deadline.cancel()


def test_no_thread_of_the_command_is_open_to_signals() -> None:
    """Else a signal that comes while the main thread does something else would go there, and end the command."""
    with subprocess.Popen(command("--", "sleep", "60"), env=environment(), stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + SECONDS
            while not (threads := blocked_signals(process.pid)) or len(threads) < 3:
                assert process.poll() is None and time.monotonic() < until
                time.sleep(0.02)
            wanted = 1 << signal.SIGTERM - 1 | 1 << signal.SIGUSR1 - 1
            assert all(mask & wanted == wanted for thread, mask in threads.items() if thread != process.pid)
        finally:
            process.terminate()
            process.wait(SECONDS)


def blocked_signals(process: int) -> dict[int, int]:
    """The mask of each thread that there is."""
    found = {}
    for status in Path(f"/proc/{process}/task").glob("*/status"):
        with suppress(OSError):
            found[int(status.parent.name)] = int(status.read_text().partition("SigBlk:")[2].split()[0], 16)
    return found


def test_a_terminals_interrupt_comes_once() -> None:
    """The terminal tells all of its foreground; the command would tell the program again. It obeys in the order of
    signals' numbers, so a second interrupt would be there before the end that is asked for."""
    program = ("import signal, sys\ncount = [0]\n"
               "def note(*_):\n    count[0] += 1\n    print('noted', flush=True)\n"
               "signal.signal(signal.SIGINT, note)\n"
               "signal.signal(signal.SIGTERM, lambda *_: sys.exit(print('count', count[0])))\n"
               "print('ready', flush=True)\nwhile True: signal.pause()\n")
    process, terminal = pty.fork()
    if not process:
        os.execve(sys.executable, command("--", sys.executable, "-c", program), environment())
    with open(terminal, "r+b", buffering=0) as shown:
        said = b""

        def until(word: bytes) -> None:
            nonlocal said
            while word not in said:
                said += shown.read(1000)

        until(b"ready")
        shown.write(b"\x03")
        until(b"noted")
        os.kill(process, signal.SIGTERM)
        until(b"count 1")
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


def test_signals_that_python_ignores_are_not_ignored_by_the_program() -> None:
    show = ["grep", "-E", "SigBlk|SigIgn", "/proc/self/status"]
    usual = subprocess.run(show, capture_output=True, text=True, check=True).stdout
    found = run("--", *show).stdout
    before, now = [[int(line.split()[1], 16) & ~(3 << 31) for line in text.splitlines()] for text in (usual, found)]
    assert before == now and len(now) == 2  # without the two that are the C library's own


def test_the_environment_says_what_the_library_needs(tmp_path: Path) -> None:
    other = tmp_path / "other.so"
    done = run("--", "env", LD_PRELOAD=f"{other}:x.so")
    said = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert said["LD_PRELOAD"] == f"{PRELOAD} {other} x.so"
    assert said[DRIVER.name] == str(FOLDER / "libcuda.so.1") and said[DEVICES.name] == "T4"
    assert said[SOCKET.name].startswith("/") and not Path(said[SOCKET.name]).exists()


def test_disabled_means_nothing_under_the_program() -> None:
    done = run("--", "env", **{DISABLE.name: "1"})
    assert "LD_PRELOAD" not in done.stdout and SOCKET.name not in done.stdout and f"{DEVICES.name}=T4" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_fleet_it_says_which_gpus() -> None:
    words = [word for word in command("--", "true") if word not in ("--fleet", "T4")]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=SECONDS, check=False)
    first, rest = done.stderr.split("\n", 1)
    if first + "\n" != NO_CALL:  # there are no real ones
        assert first.startswith("tessera: the program gets A100-80G,L40S: ") and rest == NO_CALL


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_a_program_that_calls_leaves_a_report_and_no_word(tmp_path: Path, transport: str) -> None:
    done = run("--transport", transport, "--report", str(tmp_path / "r"), *client("fork", "500"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    found = reported(tmp_path / "r")
    assert found["command"] == [sys.executable, CLIENT, "fork", "500"] and found["exit_code"] == 0
    assert [(c["client"], c["records"], c["kinds"], c["trouble"]) for c in found["clients"]] == [
        (1, 1000, {"call": 1000}, None), (2, 1000, {"call": 1000}, None)]


def test_the_library_itself_is_heard(tmp_path: Path) -> None:
    program = "import ctypes; driver = ctypes.CDLL('libcuda.so.1'); print(driver.cuInit(0))"
    done = run("--report", str(tmp_path / "r"), "--", sys.executable, "-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
    [found] = reported(tmp_path / "r")["clients"]
    assert found["kinds"]["driver"] == 1 and found["program"] == str(Path(sys.executable).resolve())


def test_records_that_are_missing_are_counted(tmp_path: Path) -> None:
    done = run("--report", str(tmp_path / "r"), *client("lossy", "30"))
    assert (done.returncode, done.stderr) == (0, "tessera: 5 records found no room and are missing; 31 are there\n")
    [found] = reported(tmp_path / "r")["clients"]
    assert (found["lost"], found["missing"], found["epochs"]) == (5, 5, 1)


def test_a_command_that_is_stopped_loses_nothing(tmp_path: Path) -> None:
    done = run("--report", str(tmp_path / "r"), *client("stopped_parent", "50"))
    [found] = reported(tmp_path / "r")["clients"]
    assert (done.returncode, done.stderr, found["lost"], found["missing"]) == (0, "", 0, 0)
    assert found["records"] == int(done.stdout) > 200


def test_no_signal_comes_of_standing_still() -> None:
    """Python's ``sigtimedwait`` gives something after a stop that was longer than the wait."""
    program = ("import signal\nfrom orchestrator.child import Signals\n"
               "with Signals() as signals:\n    print('ready', flush=True)\n"
               "    print(any([signals.pause(0.05) for _ in range(20)]))\n")
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "ready\n"
        for _ in range(4):
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.15)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.02)
        assert process.stdout.read() == "False\n"


def test_a_parent_that_ignores_its_children() -> None:
    words = shlex.join(command("--", "sh", "-c", "exit 7"))
    done = subprocess.run(["sh", "-c", f"trap '' CHLD; exec {words}"], env=environment(), capture_output=True,
                          timeout=SECONDS, check=False)
    assert done.returncode == 7


def test_nonsense_of_a_program_is_said() -> None:
    done = run(*client("garbage", "10"), text="")
    assert done.returncode == 0
    assert done.stderr.endswith(": what it wrote into its ring is no records\n") and done.stderr.count("\n") == 1


def test_who_outlives_the_program_is_waited_for(tmp_path: Path) -> None:
    done = run("--report", str(tmp_path / "r"), *client("outlived", "20"), text="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ready\n", "")
    assert reported(tmp_path / "r")["clients"][0]["records"] == 40


def test_who_outlives_the_program_too_long_is_left(tmp_path: Path) -> None:
    words = command("--report", str(tmp_path / "r"), *client("outlived", "20"), linger=0.1)
    with subprocess.Popen(words, env=environment(), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as done:
        assert done.stderr and done.stdout and done.stdin
        assert done.stdout.readline() == "ready\n"
        assert done.wait(SECONDS) == 0
        [found] = reported(tmp_path / "r")["clients"]
        assert done.stderr.readline() == (
            "tessera: the program has ended, and processes that it started go on, from now on unrecorded: "
            f"{found['process']}\n")
        assert (found["lives"], found["trouble"]) == (True, None)
        assert found["records"] in (0, 20)  # its relay may not have been ready so soon
        done.stdin.close()  # by which it ends
        assert done.stdout.read() == ""
