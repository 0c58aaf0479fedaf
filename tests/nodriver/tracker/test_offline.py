"""``tessera replay --offline``: what a placement would do with a trace, without a driver."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from orchestrator.session.code import Code
from orchestrator.session.jobs import Decision, Job
from orchestrator.session.offline import Findings, GpuCounts, Moved, offline
from orchestrator.session.placements.text import parse_placement
from orchestrator.session.placing import Settings
from orchestrator.session.segments import Gpu
from orchestrator.session.words import decision_text
from shim.wire import Kind
from tessera.cli import app
from tessera.environment import OPAQUE
from tessera.errors import ExitCode
from tessera.reasons import Reason
from tests.material import ROOT
from tests.nodriver.tracker.by_hand import ADD, BYTES, GROW, A, B, C, Program
from tests.program_records import write

TRACES = ROOT / "tests" / "fixtures" / "traces"
STEPS = TRACES / "tinygrad_steps.trace"
SCHEMA = json.loads((ROOT / "docs" / "schema" / "replay-offline.json").read_text(encoding="utf-8"))
UNKNOWN = 0xBAD
Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    """The command line in this process: its exit code, and both outputs."""
    def run(*words: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tessera", "replay", "--offline", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            app.main()
        shown = capsys.readouterr()
        return int(left.value.code or 0), shown.out, shown.err

    monkeypatch.delenv(OPAQUE.name, raising=False)
    return run


def document(shown: tuple[int, str, str], code: ExitCode = ExitCode.OK) -> dict[str, Any]:
    assert shown[0] == code, shown[2]
    found = json.loads(shown[1])
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    assert isinstance(found, dict)
    return found


def followed(program: Program, placement: str, gpus: int = 2, promised: bool = False
             ) -> tuple[Findings, list[Decision]]:
    decisions: list[Decision] = []
    settings = Settings((Gpu(1 << 30, 80),) * gpus, promised=promised)
    return offline(program.data, settings, parse_placement(placement, gpus), Code(), decisions.append), decisions


def steps(count: int) -> Program:
    """A is uploaded once; in each step ``add`` makes B of it and ``grow`` adds B to C, which comes home."""
    program = Program()
    program.put(A)
    program.put(C)
    for _ in range(count):
        program.run(ADD, B, A)
        program.run(GROW, C, B)
        program.get(C)
    return program


def test_what_a_placement_moves_is_counted() -> None:
    found, decisions = followed(steps(5), "grow=1")
    assert (found.launches, found.jobs, found.gaps, found.trouble) == (10, 5, 0, "")
    assert found.gpus == [GpuCounts(home=5), GpuCounts(sent=5, gathered=6 * BYTES, applied=5 * BYTES)]
    (step,) = found.steps
    assert (step.launches, step.count, step.steady, step.jobs, step.weights) == (2, 5, True, 1, BYTES)
    assert (step.gathered, step.applied) == ({1: BYTES}, {1: BYTES})
    assert found.allocations == [Moved(1, 3, BYTES, "", BYTES, 0, 5 * BYTES), Moved(1, 2, BYTES, "", 5 * BYTES, 0, 0)]
    assert len(decisions) == 5 and all(isinstance(one, Job) for one in decisions)
    assert decision_text(decisions[-1]).endswith(
        "stream 0x1, sent to GPU 1: grow; gather 256 of a2[0:256]; apply 256 of a3[0:256]")


def test_weights_are_gathered_once_and_known_as_such() -> None:
    program = steps(4)
    for address in (A, B, C):
        program.free(address)  # as programs do in the end
    found, _ = followed(program, "add=1")
    assert found.gpus[1] == GpuCounts(sent=4, gathered=BYTES, weights=BYTES, applied=4 * BYTES)
    assert found.steps[0].weights == BYTES


def test_what_is_mirrored_runs_at_home_as_well() -> None:
    found, _ = followed(steps(3), "add=0+1")
    assert found.gpus == [GpuCounts(home=6), GpuCounts(mirrored=3, gathered=BYTES, weights=BYTES)]


def test_what_stays_at_home_has_its_reason_and_kernel() -> None:
    program = Program()
    program.put(A)
    program.launch(b"", UNKNOWN)
    found, _ = followed(program, "*=1")
    assert found.gpus[0].home == 1 and found.jobs == 0
    assert found.refused == {(Reason.UNKNOWN_KERNEL, ""): 1} == found.opaque


def test_a_promise_keeps_replicas() -> None:
    program = Program()
    program.put(A)
    for _ in range(2):
        program.run(ADD, B, A)
        program.launch(C.to_bytes(8, "little"), UNKNOWN)
    assert followed(program, "add=1")[0].gpus[1].gathered == 2 * BYTES
    assert followed(program, "add=1", promised=True)[0].gpus[1].gathered == BYTES


@pytest.mark.parametrize("words", [
    ["--opaque", "parameters", "--client", "1"], ["--placement", "r_*=1,*=0+1", "--jobs"],
    ["--placement", "random:3", "--gpus", "4", "--jobs"], ["--placement", "*=1", "--fleet", "A100-80G,T4", "--jobs"],
], ids=" ".join)  # fmt: skip
@pytest.mark.parametrize("trace", sorted(TRACES.glob("*.trace")), ids=lambda path: path.stem)
def test_kept_traces(trace: Path, words: list[str], said: Said) -> None:
    """What is counted is what the decisions say; text and JSON agree."""
    found = document(said(trace, *words, "--json"))
    (client,) = found["clients"]
    assert client["launches"] == sum(gpu["home"] + gpu["sent"] for gpu in client["gpus"]) > 0
    if "--jobs" in words:
        jobs = [one for one in client["decisions"] if one["decision"] == "job"]
        assert client["jobs"] == len(jobs)
        for name, spans in (("gathered", "gather"), ("applied", "apply")):
            for number, gpu in enumerate(client["gpus"]):
                moved = [span["bytes"] for job in jobs if job["device"] == number for span in job[spans]]
                assert gpu[name] == sum(moved)
                assert gpu[name] == sum(one[name] for one in client["allocations"] if one["gpu"] == number)
        refused = [one for one in client["decisions"] if one["decision"] == "refused"]
        assert len(refused) == sum(why["count"] for why in client["refused"])
        assert jobs or refused
    code, text, errors = said(trace, *words)
    assert (code, errors) == (ExitCode.OK, "")
    assert f"{client['records']} records, {client['launches']} launches, {client['jobs']} jobs" in text
    assert text.count("\n  segment ") == sum("number" in one for one in client["decisions"])


def test_a_graph_that_is_taken_apart_is_told_node_by_node(said: Said) -> None:
    code, text, _ = said(STEPS, "--placement", "r_4_16_16_2=1", "--jobs")
    assert code == ExitCode.OK
    assert "record 68:3, stream 0x1, sent to GPU 1: r_4_16_16_2; gather 512 of a7[0:512]; apply 256 of a7[5" in text
    assert "  rest: record 68, at home nodes 4\n" in text
    assert "steady, weights of 10240 bytes, 5 launches; in the last: 1 jobs, GPU 1 512 bytes gathered and 256" in text


def test_gpus_are_those_of_the_trace_and_two_at_least(said: Said) -> None:
    found = document(said(TRACES / "two_devices.trace", "--json"))
    assert [gpu["capability"] for gpu in found["gpus"]] == [80, 89] and found["notes"] == []
    found = document(said(STEPS, "--json"))
    assert [gpu["capability"] for gpu in found["gpus"]] == [80, 80] and "1 more" in found["notes"][0]
    assert len(document(said(STEPS, "--json", "--gpus", "5"))["gpus"]) == 5


def test_a_gpu_that_the_code_is_not_for_is_refused(said: Said) -> None:
    """The program's PTX is for capability 8.0."""
    code, text, _ = said(TRACES / "two_devices.trace", "--placement", "saxpy=1", "--fleet", "A100-80G,T4")
    assert code == ExitCode.OK
    assert "refused: no_image, 2 times by saxpy" in text


def test_one_program_in_trouble_does_not_hide_the_others(said: Said, tmp_path: Path) -> None:
    broken, sound = steps(3), steps(2)
    broken.record(Kind.MEMORY, address=0, bytes=64, context=0, kind=1)
    sound.client = sound.client._replace(number=2)
    path = write(tmp_path / "made.trace", broken, sound)
    found = document(said(path, "--placement", "add=1", "--json"), ExitCode.BAD_INPUT)
    first, second = found["clients"]
    assert "64 bytes at 0x0 cannot be" in first["trouble"] and second["trouble"] is None
    assert (first["launches"], second["launches"]) == (6, 4)
    code, text, _ = said(path)
    assert code == ExitCode.BAD_INPUT and "  trouble: record " in text and "client 2" in text


@pytest.mark.parametrize(("words", "code", "message"), [
    (["--placement", "r_*=7"], ExitCode.USAGE, "the fleet has GPUs 0 to 1"),
    (["--placement", "nothing.json"], ExitCode.BAD_INPUT, "placement file nothing.json"),
    (["--gpus", "3", "--fleet", "L4"], ExitCode.USAGE, "leave one of them out"),
    (["--fleet", "L99"], ExitCode.BAD_INPUT, "L99"),
    (["--opaque", "nothing"], ExitCode.USAGE, "--opaque nothing"),
    (["--client", "9"], ExitCode.BAD_INPUT, "no client 9; there are: 1"),
    (["--verify"], ExitCode.USAGE, "--verify"),
], ids=str)  # fmt: skip
def test_what_cannot_be(words: list[str], code: ExitCode, message: str, said: Said) -> None:
    found, out, errors = said(STEPS, *words)
    assert (found, out) == (code, "")
    assert message in errors and errors.startswith("tessera: ") and errors.count("\n") == 1


def test_options_that_go_with_it_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["tessera", "replay", str(STEPS), "--placement", "home"])
    with pytest.raises(SystemExit) as left:
        app.main()
    assert left.value.code == ExitCode.USAGE and "go with --offline" in capsys.readouterr().err


def test_a_trace_without_gpus_needs_a_fleet(said: Said, tmp_path: Path) -> None:
    program = Program()
    program.data = [program.data[0]]
    path = write(tmp_path / "made.trace", program)
    code, _, errors = said(path)
    assert code == ExitCode.USAGE and "--fleet" in errors
    assert said(path, "--fleet", "L4,L4")[0] == ExitCode.OK


def test_the_promise_of_the_environment(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPAQUE.name, "parameters")
    assert document(said(STEPS, "--json"))["promised"] is True
    assert document(said(STEPS, "--json", "--opaque", ""))["promised"] is False
    monkeypatch.setenv(OPAQUE.name, "everything")
    code, _, errors = said(STEPS)
    assert code == ExitCode.USAGE and f"{OPAQUE.name} everything" in errors


def test_it_needs_no_driver() -> None:
    program = ("import sys\nsys.modules.update({'cuda': None, 'llvmlite': None})\nfrom tessera.cli.app import main\n"
               f"sys.argv[1:] = ['replay', '--offline', {str(STEPS)!r}]\nmain()")
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "30 launches at home" in done.stdout
