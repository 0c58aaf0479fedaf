"""Golden texts of the analysis: what ``tessera ptx`` says of small modules, and of launches that they name themselves.

Run as ``python -m tests.golden`` from the repository this writes all of them anew; read the difference before it is
kept. A comment line ``// launch KERNEL: TEXT`` of a module asks for that launch (``TEXT`` as for ``--launch``).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rich.text import Text

from ptxparse.launch_text import parse_launch
from tessera.cli.examination import FileFindings, examine, launched
from tessera.cli.reporters import output, ptx_launch, ptx_text
from tests.material import ROOT

FOLDER = ROOT / "tests" / "nodriver" / "ptxparse" / "golden"
_LAUNCH = re.compile(r"^// launch (\w+): (.*)$", re.MULTILINE)


def inputs() -> list[Path]:
    """The modules that have a golden text beside them."""
    return sorted(FOLDER.glob("*.ptx"))


def golden(path: Path) -> Path:
    """Where the text of a module is kept."""
    return path.with_suffix(".txt")


def said(path: Path) -> str:
    """What is said of a module now."""
    found = examine(str(path))
    if found.error is not None or found.module is None:
        raise AssertionError(f"{path}: {found.error}")
    found.path = path.name
    return output.plain([ptx_text.file_part(found, found.module)]) + "".join(_launches(found, path.read_text()))


def _launches(found: FileFindings, text: str) -> list[str]:
    assert found.module is not None
    parts = []
    for name, launch in _LAUNCH.findall(text):
        (kernel,) = [k for k in found.kernels if k.function.name == name]
        result = launched(found.module, kernel, parse_launch(launch))
        parts.append(output.plain([Text(f"\n{name}, {launch}"), *ptx_launch.lines(result, kernel.program)]))
    return parts


def main() -> None:
    """Writes every golden text that differs; names those."""
    for path in inputs():
        text = said(path)
        if not golden(path).exists() or golden(path).read_text() != text:
            golden(path).write_text(text)
            sys.stdout.write(f"{golden(path).relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
