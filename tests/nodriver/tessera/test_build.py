"""``build.py``: its command line, and the parts it is made of that install nothing."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest

import build
from tests.material import ROOT
from tools import driver, locks, native, report, shim, steps, tasks, tiers, venv, wheel


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["test"], {"task": "test", "tiers": [], "long": False, "jobs": None}),
        (["test", "ptxparse", "softgpu", "-j", "1"], {"tiers": ["ptxparse", "softgpu"], "jobs": 1}),
        (["test", "--long"], {"tiers": [], "long": True}),
        (["bench"], {"task": "bench", "name": None, "arguments": [], "clients": False}),
        (["bench", "--clients", "precision", "--quick", "x"], {"clients": True, "arguments": ["--quick", "x"]}),
        (["build"], {"task": "build"}),
        (["gpu-kit"], {"task": "gpu-kit", "python": "3.11"}),
        (["gpu-kit", "--python", "3.12"], {"python": "3.12"}),
        (["lock"], {"task": "lock"}),
        (["clean"], {"task": "clean"}),
    ],
)
def test_command_line(words: list[str], expected: dict[str, object]) -> None:
    assert expected.items() <= vars(build.parser().parse_args(words)).items()


@pytest.mark.parametrize("words", [[], ["deploy"], ["test", "--fast"], ["test", "-j", "0"], ["clean", "x"]])
def test_what_it_does_not_do_is_a_usage_error(words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        build.parser().parse_args(words)
    assert caught.value.code == 2


def test_unknown_tier_lists_the_tiers(capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["test", "no_such_tier"]) == 2
    assert "no tier is named 'no_such_tier'; there are: " in capsys.readouterr().err


def test_unknown_benchmark_lists_the_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["bench", "no_such_benchmark"]) == 2
    assert "no benchmark is named 'no_such_benchmark'" in capsys.readouterr().err


def test_every_test_file_is_in_a_tier_with_a_share() -> None:
    found = tiers.tiers()
    assert Path(__file__).parent in [tier.folder for tier in found]
    shared = {name for _, _, members in report.SHARES for name in members}
    assert {tier.name for tier in tiers.select([])} <= shared
    assert len({tier.name for tier in found}) == len(found)


def test_tiers_that_need_a_gpu_run_only_by_name() -> None:
    assert [tier.name for tier in tiers.select(["hardware"])] == ["hardware"]
    assert "hardware" not in [tier.name for tier in tiers.select([])]
    assert all(tier.folder.parent.name in {"nodriver", "softgpu", "tests"} for tier in tiers.select([]))


def test_a_test_file_outside_the_tiers_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for room in tiers.ROOMS:
        (tmp_path / room / "one").mkdir(parents=True)
    (tmp_path / "nodriver" / "one" / "test_a.py").touch()
    monkeypatch.setattr(tiers, "TESTS", tmp_path)
    assert [tier.name for tier in tiers.tiers()] == ["one"]
    (tmp_path / "test_lost.py").touch()
    with pytest.raises(steps.StepFailed, match="test_lost.py lies in no tier"):
        tiers.tiers()


def test_results_are_read_from_junit(tmp_path: Path) -> None:
    results = tmp_path / "one.xml"
    results.write_text(
        '<testsuites><testsuite><testcase name="a"><properties><property name="launches" value="3"/>'
        '<property name="kernel" value="saxpy"/></properties></testcase>'
        '<testcase name="b"><properties><property name="launches" value="4"/></properties></testcase>'
        '<testcase name="c"><skipped type="pytest.skip" message="reference material not found"/></testcase>'
        '<testcase name="d"><failure message="no"/></testcase><testcase name="e"><error message="no"/></testcase>'
        '<testcase name="f"><skipped type="pytest.xfail" message="known"/></testcase></testsuite></testsuites>'
    )
    outcome = tiers.Outcome(tiers.Tier("one", tmp_path), 1.5, 1)
    tiers.read_results(outcome, results)
    assert (outcome.passed, outcome.failed, outcome.skipped) == (3, 2, 1)
    assert outcome.skip_reasons == {"reference material not found": 1}
    assert outcome.noted == {"launches": 7.0, "kernel": ["saxpy"]}


def outcome(status: int | None) -> tiers.Outcome:
    return tiers.Outcome(tiers.Tier("ptxparse", ROOT / "tests" / "nodriver" / "ptxparse"), 2.0, status, passed=5)


def test_failed_slow_and_endless_suites_fail() -> None:
    tasks.judge([outcome(0)], 60.0)
    with pytest.raises(steps.StepFailed, match=r"failed: ptxparse \(pytest exit status 1\)"):
        tasks.judge([outcome(0), outcome(1)], 60.0)
    with pytest.raises(steps.StepFailed, match="ptxparse was ended: the suite is limited to 18 minutes"):
        tasks.judge([outcome(None)], 60.0)
    with pytest.raises(steps.StepFailed, match="took 1081 s and is limited to 18 minutes"):
        tasks.judge([outcome(0)], 1081.0)


def test_times_are_printed_with_shares(capsys: pytest.CaptureFixture[str]) -> None:
    report.print_times({"install": 30.0, "checks": 10.0, "ptxparse": 130.0, "nameless": 30.0})
    lines = {line.split("  ")[0].strip(): line for line in capsys.readouterr().out.splitlines()}
    assert "over its share" in lines["ptxparse, interpreter, command line"]
    assert "65 %" in lines["ptxparse, interpreter, command line"]
    assert "over its share" not in lines["install, build and checks"]
    assert "30.0" in lines["without a share"]


def test_long_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MEASURED", tmp_path)
    path = report.write_summary([outcome(0)], {"install": 1.0, "ptxparse": 2.04})
    summary = json.loads(path.read_text())
    assert path.name == f"test-long-{summary['date']}.json"
    assert (summary["schema"], summary["version"]) == ("tessera.test-long", 1)
    assert summary["seconds"] == {"install": 1.0, "ptxparse": 2.0}
    assert summary["tiers"]["ptxparse"] == {"passed": 5, "failed": 0, "skipped": {}, "noted": {}}


@pytest.fixture
def quiet_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(steps, "LOGS", tmp_path / "log")
    return tmp_path / "log"


def test_a_failing_step_says_which_and_what_to_do(quiet_logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-c", "print('the cause'); raise SystemExit(3)"]
    with pytest.raises(steps.StepFailed) as caught:
        steps.run("make a thing", command, "Do this.")
    assert str(caught.value).startswith("step 'make a thing' failed (exit status 3). Do this. Its whole output: ")
    assert "the cause" in capsys.readouterr().out
    assert (quiet_logs / "make-a-thing.txt").read_text() == "the cause\n"


def test_a_step_that_works_is_one_line(quiet_logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps.run("make a thing", [sys.executable, "-c", "print('chatter')"], "Do this.")
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_command_out_of_time_is_ended() -> None:
    assert steps.stream([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.2) is None
    assert steps.stream([sys.executable, "-c", "raise SystemExit(4)"], timeout=60) == 4


@pytest.mark.parametrize("text", ["--index-url https://example.org/simple\n", "a @ https://example.org/a.whl\n"])
def test_a_lock_that_names_an_index_is_refused(tmp_path: Path, text: str) -> None:
    lock = tmp_path / "dev.lock"
    lock.write_text("a==1 \\\n    --hash=sha256:00\n")
    locks.check_plain(lock)
    lock.write_text(lock.read_text() + text)
    with pytest.raises(steps.StepFailed, match="dev.lock:3 names an index"):
        locks.check_plain(lock)


def test_stamp_survives_and_nonsense_is_no_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(venv, "STAMP", tmp_path / "stamp.json")
    assert venv.read_stamp() == venv.Stamp()
    stamp = venv.write_stamp(venv.Stamp(made_here=True, root="here", dev="1", project="2"))
    assert venv.read_stamp() == stamp
    for nonsense in ("", "[]", '{"unknown": 1}'):
        (tmp_path / "stamp.json").write_text(nonsense)
        assert venv.read_stamp() == venv.Stamp()


def test_wheel_contents_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = wheel.contents()
    for name in (*wheel.COMPILED, "softgpu/engine/runtime/abi.h", "softgpu/engine/ops/integer.py", "tessera/errors.py"):
        assert name in names
    good, extra, short = (tmp_path / f"{stem}-{wheel.TAG}.whl" for stem in ("good", "extra", "short"))
    for path, content in ((good, names), (extra, [*names, "tests/__init__.py"]), (short, names[1:])):
        with zipfile.ZipFile(path, "w") as archive:
            for name in (*content, "tessera_gpu-0.1.0.dist-info/METADATA"):
                archive.writestr(name, "")
    wheel.check_contents(good)
    with pytest.raises(steps.StepFailed, match="holds tests/__init__.py, which is in no listed package"):
        wheel.check_contents(extra)
    with pytest.raises(steps.StepFailed, match=f"the wheel lacks {names[0]}"):
        wheel.check_contents(short)
    with pytest.raises(steps.StepFailed, match=f"pure-py3-none-any.whl should end in {wheel.TAG}.whl"):
        wheel.check_contents(good.rename(tmp_path / "pure-py3-none-any.whl"))


def test_the_wheel_is_stale_when_a_c_source_changes() -> None:
    sources = {path.relative_to(ROOT).as_posix() for path in wheel.sources()}
    assert {"softgpu/engine/runtime/launch.c", "softgpu/engine/runtime/internal.h", "setup.py"} <= sources
    assert all((ROOT / name).is_file() for name in sources)


def task_steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that gets the names of the steps that tasks do, which do nothing."""
    done: list[str] = []
    monkeypatch.setattr(venv, "ensure", lambda clients=False: done.append("install" + " clients" * clients))
    monkeypatch.setattr(native, "prepare", lambda: done.append("run-time"))
    monkeypatch.setattr(driver, "build", lambda *_: done.append("driver") or ROOT)
    monkeypatch.setattr(shim, "prepare", lambda *_: done.append("extension") or [])
    monkeypatch.setattr(wheel, "build", lambda: done.append("wheel") or ROOT)
    monkeypatch.setattr(tasks, "check", lambda: done.append("check") or 1.0)
    monkeypatch.setattr(tasks, "stream", lambda *_: done.append("benchmark") or 0)
    monkeypatch.setattr(tiers, "run_tier", lambda tier, *_: done.append(tier.name) or tiers.Outcome(tier, 1.0, 0))
    return done


def test_only_what_uses_the_run_time_needs_a_c_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {tier.name for tier in tiers.tiers()} | set(tasks.benchmarks())
    assert (driver.USERS | venv.CLIENTS_USERS).issubset(runs)
    assert native.USERS.issubset({tier.name for tier in tiers.tiers()} & set(tasks.benchmarks()))
    done = task_steps(monkeypatch)
    for run, expected in (
        (lambda: tasks.test(["ptxparse"], False, 1), ["install", "ptxparse"]),
        (lambda: tasks.test(["engine"], False, 1), ["install", "run-time", "engine"]),
        (lambda: tasks.test(["driver"], False, 1), ["install", "run-time", "driver", "driver"]),
        (lambda: tasks.test(["shim"], False, 1), ["install", "run-time", "driver", "extension", "shim"]),
        (lambda: tasks.test(["device"], False, 1), ["install", "run-time", "driver", "extension", "device"]),
        (lambda: tasks.test(["clients"], False, 1), ["install clients", "run-time", "driver", "extension", "clients"]),
        (lambda: tasks.bench("parse", [], False), ["install", "benchmark"]),
        (lambda: tasks.bench("engine", [], False), ["install", "run-time", "benchmark"]),
        (lambda: tasks.bench("driver", [], False), ["install", "run-time", "driver", "benchmark"]),
        (lambda: tasks.bench("llm", [], False), ["install clients", "run-time", "driver", "benchmark"]),
        (lambda: tasks.bench("record", [], False), ["install clients", "run-time", "driver", "extension", "benchmark"]),
        (tasks.build, ["install", "run-time", "driver", "extension", "wheel"]),
    ):
        done.clear()
        run()
        assert done == expected
    done.clear()
    tasks.test([], False, 1)
    assert done[:6] == ["install clients", "run-time", "driver", "extension", "wheel", "check"]


def test_the_version_is_written_at_every_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands: list[list[object]] = []
    monkeypatch.setattr(native, "build", lambda: tmp_path / "lib" / "library.so")
    monkeypatch.setattr(native, "run", lambda _title, command, _advice: commands.append(command))
    native.prepare()
    assert commands == [[venv.PYTHON, "-m", "softgpu.engine.version", tmp_path / "lib"]]


def test_clean_leaves_an_adopted_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (tasks, venv, steps):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(tasks, "BUILD", tmp_path / "build")
    monkeypatch.setattr(venv, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(venv, "STAMP", tmp_path / ".venv" / "stamp.json")
    made = ("build/log", ".mypy_cache", "tessera/__pycache__", "tessera_gpu.egg-info", "softgpu/lib", "shim/lib")
    for name in (*made, ".venv", "kept/inner"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "shim" / "_wire.abi3.so").touch()
    tasks.clean()
    assert sorted(p.name for p in tmp_path.iterdir()) == [".venv", "kept", "shim", "softgpu", "tessera"]
    assert not list((tmp_path / "shim").iterdir())
    assert not list((tmp_path / "tessera").iterdir()) and not list((tmp_path / "softgpu").iterdir())
    venv.write_stamp(venv.Stamp(made_here=True))
    tasks.clean()
    assert not (tmp_path / ".venv").exists()
