"""What works without the packages of the extras, what says that it needs them, and what does not wait for them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.material import ROOT

EXTRA = ("llvmlite", "cffi")
BLOCK = f"import sys; sys.modules.update(dict.fromkeys({EXTRA!r}))\n"  # None there makes an import fail


def python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_command_line_works_without() -> None:
    command = "from tessera.cli.app import main\nsys.argv[1:] = ['ptx', 'examples/kernels.ptx']\nsys.exit(main())"
    done = python(BLOCK + command)
    assert done.returncode == 0, done.stderr
    assert "saxpy" in done.stdout


@pytest.mark.parametrize("module", ["tessera.cli.app", "softgpu.reference", "softgpu.engine", "softgpu.engine.version"])
def test_imports_that_do_not_load_them(module: str) -> None:
    done = python(f"import sys, {module}\nprint(*[name for name in {EXTRA!r} if name in sys.modules])")
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_the_engine_loads_numbers_only_when_it_is_used() -> None:
    assert python("import sys, softgpu.engine\nsys.exit('numpy' in sys.modules)").returncode == 0


def test_the_service_starts_without_a_warning() -> None:
    done = python("import runpy, sys\nsys.argv[1:] = ['--help']\nrunpy.run_module('softgpu.engine.service')")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_the_engine_without_them_says_what_it_needs() -> None:
    program = "from softgpu.engine.errors import EngineError\ntry:\n    from softgpu.engine import LoadedModule\n"
    done = python(BLOCK + program + "except (EngineError, ImportError) as error:\n    print(error)")
    assert done.stdout.startswith("the software GPU needs the package llvmlite (the extra 'softgpu')"), done.stderr


def test_running_a_program_without_zmq_says_what_it_needs() -> None:
    block = "import sys\nsys.modules['zmq'] = None\nfrom tessera.cli.app import main\n"
    done = python(f"{block}sys.argv[1:] = ['run', '--fleet', 'L4', '--', 'true']\nsys.exit(main())")
    assert (done.returncode, done.stderr) == (
        4, "tessera: records need the package pyzmq (the extra 'shim'): pip install 'tessera-gpu[shim]'\n"
    )


def test_every_name_of_the_engine_is_there() -> None:
    from softgpu import engine

    assert {name: getattr(engine, name).__name__ for name in engine.__all__} == {n: n for n in engine.__all__}
    assert set(engine.__all__) <= set(dir(engine))
    with pytest.raises(AttributeError, match=r"softgpu\.engine.* no attribute 'nothing'"):
        engine.nothing  # noqa: B018


def test_a_module_of_the_same_name_does_not_hide_launch() -> None:
    done = python("import softgpu.engine.launch\nfrom softgpu.engine import launch\nprint(launch.__name__)")
    assert done.stdout == "launch\n", done.stderr
