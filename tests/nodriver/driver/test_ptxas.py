"""``softgpu-ptxas``: parses PTX and copies it, and refuses what it would not do."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from softgpu import environ, ptxas
from softgpu.environ import environment
from tessera.errors import UsageError
from tests.material import ROOT

KERNELS = ROOT / "examples" / "kernels.ptx"
TRITON = ["-lineinfo", "--fmad=false", "-v", "--regAllocOptLevel=2", "--gpu-name=sm_80"]
"""What Triton 3.9.0 passes, beside its files."""


def run(*arguments: str | Path, program: Path | None = None, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [program] if program else [sys.executable, "-m", "softgpu.ptxas"]
    return subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def test_the_program_copies(tmp_path: Path) -> None:
    output = tmp_path / "kernels.o"
    done = run(*TRITON, KERNELS, "-o", output)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "softgpu-ptxas info    : kernels handed on as PTX: saxpy, matmul_tiled\n"
    assert output.read_bytes() == KERNELS.read_bytes()
    assert run(*TRITON[:2], KERNELS, "-o", output).stderr == "", "silent without -v"


def test_the_version_is_found_as_triton_looks_for_it() -> None:
    done = run("--version")
    found = re.search(r".*release (\d+\.\d+).*", done.stdout, flags=re.MULTILINE)
    assert done.returncode == 0 and found is not None and found[1] == "13.0"


def test_the_installed_program(tmp_path: Path) -> None:
    scripts = importlib.metadata.entry_points(group="console_scripts", name=environ.PTXAS)
    if not scripts:
        pytest.skip("installed before there was this program: python3 build.py test installs anew")
    program = shutil.which(environ.PTXAS, path=sysconfig.get_path("scripts"))
    assert program is not None and environment()["TRITON_PTXAS_PATH"] == program
    assert scripts[environ.PTXAS].load() is ptxas.main
    assert run("-o", tmp_path / "out", KERNELS, program=Path(program), folder=tmp_path).returncode == 0
    assert (tmp_path / "out").read_bytes() == KERNELS.read_bytes()


def test_broken_text_is_an_error_with_its_place(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ptx"
    broken.write_text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k( { ret; }\n")
    done = run(broken, "-o", tmp_path / "out")
    assert done.returncode == ptxas.FAILED and done.stderr.startswith(f"softgpu-ptxas fatal   : {broken}:4:")
    assert done.stderr.count("\n") == 1 and not (tmp_path / "out").exists()
    done = run(tmp_path / "none.ptx")
    assert (done.returncode, done.stderr.count("\n")) == (ptxas.FAILED, 1) and "No such file" in done.stderr
    done = run(KERNELS, "-o", tmp_path / "no" / "out")
    assert done.returncode == ptxas.FAILED and f"{tmp_path}/no/out: No such file" in done.stderr


def test_options_in_all_their_forms() -> None:
    found = ptxas.wanted(["-O3", "--opt-level", "1", "-arch=sm_90a", "-o", "x", "a", "-Ofc=mid", "-g", "b", "-"])
    assert found.files == ["a", "b", "-"]
    assert found.options == {"opt-level": "1", "gpu-name": "sm_90a", "output-file": "x", "Ofast-compile": "mid",
                             "device-debug": ""}


@pytest.mark.parametrize(("arguments", "message"), [
    (["--foo", "a"], "option '--foo' is not known to this stand-in"),
    (["-c", "a"], "option '-c' is not known"), (["-optimize-float-atomics"], "is not known"),
    (["-O", "3", "a", "-o"], "option '-o' needs a value"), (["--fmad="], "needs a value"),
    (["-v=1"], "option '-v=1' takes no value"),
    ([], "there must be one PTX file, not 0"), (["a", "b"], "not 2"),
    (["--gpu-name=compute_80", str(KERNELS)], "gpu-name 'compute_80' is no architecture"),
    (["-arch", "sm_75", str(KERNELS)], "the module is for sm_80, which cannot become code for sm_75"),
])
def test_what_it_does_not_do(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ptxas.run(arguments)


@pytest.mark.parametrize(("target", "name", "fits"), [
    ("sm_80", "sm_90", True), ("sm_80", "sm_80", True), ("sm_90", "sm_80", False), ("sm_80", "sm_90a", True),
    ("sm_90a", "sm_90a", True), ("sm_90a", "sm_90", False), ("sm_90a", "sm_100a", False),
    ("sm_100f", "sm_103", True), ("sm_100f", "sm_103a", True), ("sm_103f", "sm_100", False),
    ("sm_100f", "sm_120", False), ("texmode_independent", "sm_80", True),
])
def test_which_code_a_module_can_become(target: str, name: str, fits: bool) -> None:
    if fits:
        ptxas.check_target([target], name)
    else:
        with pytest.raises(UsageError, match=f"the module is for {target}, which cannot become code for {name}"):
            ptxas.check_target([target], name)


def test_it_starts_without_what_is_heavy() -> None:
    """Triton runs it for every kernel."""
    code = f"""
import sys
from softgpu import ptxas
ptxas.run(["-o", "/dev/null", {str(KERNELS)!r}])
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"numpy", "llvmlite", "cffi", "typer", "rich"} & set(done.stdout.split())
