"""What ``pyproject.toml`` cannot say: the wheel holds compiled libraries, of the software GPU and of the shim."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from tools.steps import StepFailed  # noqa: E402 - found by the path above

HAS_RUNTIME = sys.platform == "linux" and platform.machine() == "x86_64"
"""On other machines the package reads PTX and has no software GPU."""


class Build(build_py):
    """Puts the library and the engine's version beside the packages. A development install has neither: there
    ``build.py`` makes them when they are needed."""

    def run(self) -> None:
        super().run()
        if HAS_RUNTIME and not self.editable_mode:
            try:
                add_runtime(Path(self.build_lib, "softgpu", "lib"))
                add_shim(Path(self.build_lib))
            except StepFailed as failure:  # setuptools shows its own errors without a trace
                raise CompileError(str(failure)) from None


def add_runtime(folder: Path) -> None:
    """The libraries and ``engine-info`` in a folder. Raises StepFailed."""
    from softgpu.engine.version import FILE, engine_version
    from tools import driver, native

    libraries = [native.build(), driver.build(Path(sys.executable))]
    folder.mkdir(parents=True, exist_ok=True)
    for library in libraries:
        shutil.copy2(library, folder / library.name)
    driver.stand_in(folder)
    # Without an interpreter: the wheel is for any machine, so that the one beside it is taken.
    (folder / FILE).write_text(f"engine {engine_version()}\n", encoding="utf-8")


def add_shim(build: Path) -> None:
    """What is compiled for the shim, in its folders under ``build``. Raises StepFailed."""
    from tools import shim

    for product in shim.prepare(Path(sys.executable)):
        place = build / product.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(product, place)


class Wheel(bdist_wheel):
    """Any Python 3 on this platform: the libraries do not know Python, and the extension knows its limited API only."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class Package(Distribution):
    """A package that belongs into the folder for this platform."""

    def has_ext_modules(self) -> bool:
        return HAS_RUNTIME


setup(distclass=Package, cmdclass={"build_py": Build, "bdist_wheel": Wheel})
