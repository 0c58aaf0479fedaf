"""The tracker with another text in the place of a part of one of its modules, beside the one that is there."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from tests.material import ROOT

PACKAGE = "orchestrator.session"
SHARED = frozenset({"jobs", "operations", "errors", "code", "images", "linking", "placement"})
"""Modules that are the same for all: by their classes others know decisions, or they remember kernels."""


def source(module: str) -> Path:
    return ROOT / "orchestrator" / "session" / f"{module.replace('.', '/')}.py"


def mutated(name: str, module: str, old: str, new: str) -> str:
    """The text of a module with ``new`` where ``old`` is, for the mutant ``name``."""
    text = source(module).read_text(encoding="utf-8")
    found = text.count(old)
    assert found == 1, f"the text of mutant {name!r} is {found} times in {module}.py: say what it is now"
    return text.replace(old, new)


class _Loader(SourceFileLoader):
    """Has a text instead of the file's."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._text, self.path, "exec")


class _Finder:
    """Finds one module elsewhere than in its file."""

    def __init__(self, name: str, path: Path, text: str) -> None:
        self._name, self._path, self._text = name, path, text

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
                  ) -> ModuleSpec | None:
        if name != self._name:
            return None
        return spec_from_file_location(name, self._path, loader=_Loader(name, str(self._path), self._text))


@contextmanager
def _aside(kept: frozenset[str]) -> Iterator[None]:
    """Only these modules of the package are loaded, and afterwards all as before."""
    package, prefix = sys.modules[PACKAGE], f"{PACKAGE}."
    before = {name: module for name, module in sys.modules.items() if name.startswith(prefix)}
    attributes = dict(vars(package))
    for name in before:
        if name.removeprefix(prefix) not in kept:
            del sys.modules[name]
            vars(package).pop(name.removeprefix(prefix), None)  # "from package import name" looks there first
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.startswith(prefix)]:
            del sys.modules[name]
        sys.modules.update(before)
        vars(package).clear()
        vars(package).update(attributes)


def altered(module: str, text: str, wanted: str = "tracker") -> ModuleType:
    """The module ``wanted``, and all that it imports of the package, loaded anew with ``text`` for what ``module``
    says."""
    finder = _Finder(f"{PACKAGE}.{module}", source(module), text)
    with _aside(SHARED - {module}):
        sys.meta_path.insert(0, finder)  # type: ignore[arg-type]
        try:
            return importlib.import_module(f"{PACKAGE}.{wanted}")
        finally:
            sys.meta_path.remove(finder)  # type: ignore[arg-type]
