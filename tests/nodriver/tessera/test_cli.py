"""The command line as a person and a script meet it: texts, exit codes, what goes to which stream."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tessera.cli import app, exits
from tessera.cli.reporters import output, ptx_text
from tessera.errors import ExitCode, TesseraError
from tests.material import ROOT

KERNELS = str(ROOT / "examples" / "kernels.ptx")
GATHER = str(ROOT / "examples" / "gather_rows.ptx")
SAXPY = "grid=8 block=128 args=ptr:4000,ptr:4000,f32:2,i32:1000"


def tessera(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the command line in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["tessera", *words])
    with pytest.raises(SystemExit) as left:
        app.main()
    assert isinstance(left.value.code, int)
    return left.value.code


def test_everything_known_is_exit_code_0(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert tessera("ptx", KERNELS, monkeypatch=monkeypatch) == ExitCode.OK
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.startswith(f"{KERNELS}: PTX 9.0 for sm_80, 2 kernels\n")
    words = " ".join(shown.out.split())
    assert "reads param_1 line 36 4 bytes at 4*ctaid.x*ntid.x + 4*tid.x if ctaid.x*ntid.x + tid.x < param_3" in words
    assert "loop: k0 = 0, 1, … while 16*k0 < param_5" in words


def test_an_opaque_kernel_is_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert tessera("ptx", KERNELS, GATHER, monkeypatch=monkeypatch) == ExitCode.FINDING
    out = capsys.readouterr().out
    assert "opaque (pointer_from_memory, line 39): An address was itself loaded from memory." in out
    assert "saxpy (line 9)" in out


def test_a_launch_is_shown_in_bytes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert tessera("ptx", KERNELS, "--kernel", "saxpy", "--launch", SAXPY, monkeypatch=monkeypatch) == ExitCode.OK
    out = capsys.readouterr().out
    assert "matmul_tiled" not in out
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "reads param_1 0 to 4,000 of 4,000 bytes exact" in rows
    assert "writes all of param_0 0 to 4,000 of 4,000 bytes exact" in rows


def test_the_documented_session_is_what_happens() -> None:
    page = (ROOT / "docs" / "ptx.md").read_text(encoding="utf-8")
    shown = page.split("```\n$ ")[1].split("\n```")[0]
    command, _, expected = shown.replace("\\\n", "").partition("\n")
    done = child(*shlex.split(command)[1:])
    assert done.stdout == expected + "\n"


def test_a_part_of_an_allocation(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    launch = "grid=1 block=128 args=ptr:4000,ptr:9000,f32:2,i32:100"
    assert tessera("ptx", KERNELS, "--kernel", "saxpy", "--launch", launch, monkeypatch=monkeypatch) == ExitCode.OK
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "reads param_1 0 to 400 of 9,000 bytes exact" in rows
    assert "writes all of param_0 0 to 400 of 4,000 bytes exact" in rows


def test_a_pointer_into_nothing_is_opaque(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    launch = "grid=8 block=128 args=u64:4096,ptr:4000,f32:2,i32:1000"
    assert tessera("ptx", KERNELS, "--kernel", "saxpy", "--launch", launch, monkeypatch=monkeypatch) == ExitCode.FINDING
    assert "opaque (unknown_base)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ptx", KERNELS, "--launch", SAXPY], "is for one kernel, choose it with --kernel: saxpy, matmul_tiled"),
        (["ptx", KERNELS, "--kernel", "daxpy"], "no kernel is named 'daxpy'; there are: saxpy, matmul_tiled"),
        (["ptx", KERNELS, "--launch", "grid=1"], "launch: block= is missing"),
        (["ptx", GATHER, "--launch", "grid=1 block=1 args=ptr:8"], "gather_rows takes 4 arguments, 1 given"),
    ],
)
def test_what_does_not_fit_is_exit_code_2(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tessera(*words, monkeypatch=monkeypatch) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("tessera: ")
    assert said in shown.err


@pytest.mark.parametrize("words", [["ptx"], ["no-verb"], ["ptx", "--no-option"], ["ptx", KERNELS, "--launch"]])
def test_usage_errors_of_the_parser_are_exit_code_2(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tessera(*words, monkeypatch=monkeypatch) == ExitCode.USAGE
    assert capsys.readouterr().out == ""


def test_a_missing_file_is_exit_code_3_and_the_others_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "none.ptx")
    assert tessera("ptx", missing, GATHER, monkeypatch=monkeypatch) == ExitCode.BAD_INPUT
    shown = capsys.readouterr()
    assert shown.err == f"tessera: {missing}: No such file or directory\n"
    assert "gather_rows" in shown.out
    assert tessera("ptx", str(tmp_path), monkeypatch=monkeypatch) == ExitCode.BAD_INPUT


def test_malformed_text_is_exit_code_3_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.ptx"
    text = Path(KERNELS).read_text(encoding="utf-8")
    broken.write_text(text.replace("mov.u32 \t%r3, %ctaid.x;", "mov.u32 \t%r3, [;", 1))
    assert broken.read_text() != text
    assert tessera("ptx", KERNELS, str(broken), monkeypatch=monkeypatch) == ExitCode.BAD_INPUT
    shown = capsys.readouterr()
    line = text[: text.index("mov.u32 \t%r3, %ctaid.x;")].count("\n") + 1
    assert shown.err.startswith(f"tessera: {broken}:{line}:")
    assert "expected" in shown.err
    assert "matmul_tiled" in shown.out


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x02\x01\x01" + bytes(100), b"\xff\xfe garbage", b"not PTX at all"])
def test_what_is_no_ptx_is_bad_input_or_an_empty_module(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "thing"
    path.write_bytes(content)
    assert tessera("ptx", str(path), monkeypatch=monkeypatch) == ExitCode.BAD_INPUT
    assert f"{path}:" in capsys.readouterr().err


def test_an_embedded_image_may_end_in_nuls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "image.ptx"
    path.write_bytes(Path(KERNELS).read_bytes() + bytes(8))
    assert tessera("ptx", str(path), monkeypatch=monkeypatch) == ExitCode.OK


def test_version_and_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert tessera("--version", monkeypatch=monkeypatch) == ExitCode.OK
    assert capsys.readouterr().out == f"tessera {app.version()}\n"
    assert tessera("ptx", "--help", monkeypatch=monkeypatch) == ExitCode.OK
    assert "--launch" in capsys.readouterr().out


def test_errors_become_their_exit_code_and_defects_propagate(capsys: pytest.CaptureFixture[str]) -> None:
    class Late(TesseraError):
        exit_code = ExitCode.DEADLINE

    def late() -> None:
        raise Late("nobody answered")

    def defect() -> None:
        raise ZeroDivisionError

    assert exits.run(late) == ExitCode.DEADLINE
    assert capsys.readouterr().err == "tessera: nobody answered\n"
    with pytest.raises(ZeroDivisionError):
        exits.run(defect)


def child(*words: str, **extra: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **extra}
    command = [sys.executable, "-m", "tessera", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_piped_output_is_plain_and_one_row_a_line() -> None:
    done = child("ptx", "examples/kernels.ptx", COLUMNS="40", FORCE_COLOR="")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert [line for line in done.stdout.splitlines() if line != line.rstrip()] == []
    assert "4 bytes at 64*param_5*ctaid.y + 4*param_5*tid.y + 4*tid.x + 64*k0" in done.stdout


def test_standard_input_is_a_dash() -> None:
    command = [sys.executable, "-m", "tessera", "ptx", "-"]
    text = Path(GATHER).read_text(encoding="utf-8")
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("-: PTX 9.0")


def test_a_narrow_terminal_folds_instead_of_cutting() -> None:
    from tessera.cli.examination import examine

    found = examine(KERNELS)
    assert found.module is not None
    narrow = output.plain([ptx_text.file_part(found, found.module)], width=50)
    assert max(map(len, narrow.splitlines())) <= 50
    assert "ctaid.x*ntid.x" in narrow.replace("\n", "").replace(" ", "")


def test_a_reader_that_leaves_early_ends_it_quietly() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        command = [sys.executable, "-m", "tessera", "ptx", "--json", "examples/kernels.ptx"]
        done = subprocess.run(command, cwd=ROOT, stdout=pipe, stderr=subprocess.PIPE, timeout=60, check=False)
    assert b"Traceback" not in done.stderr
    assert done.returncode != 0


def test_malformed_standard_input_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"@@@")))
    assert tessera("ptx", "-", monkeypatch=monkeypatch) == ExitCode.BAD_INPUT
