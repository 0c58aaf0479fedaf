"""What ``tessera ptx`` says of small modules in the styles of several producers, compared with texts kept beside them.

After an intended change: ``python -m tests.golden`` writes the texts anew; read the difference before keeping it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import FOLDER, golden, inputs, said


@pytest.mark.parametrize("path", inputs(), ids=lambda path: path.stem)
def test_the_analysis_says_what_it_said(path: Path) -> None:
    assert said(path) == golden(path).read_text()


def test_every_text_has_its_module_and_every_kernel_a_mention() -> None:
    assert len(inputs()) >= 12
    assert {path.stem for path in FOLDER.glob("*.txt")} == {path.stem for path in inputs()}
    for path in inputs():
        text = golden(path).read_text()
        for line in path.read_text().splitlines():
            if line.startswith(".visible .entry "):
                assert line.split()[2].partition("(")[0] in text


def test_a_launch_is_evaluated_for_each_comment_that_asks() -> None:
    for path in inputs():
        asked = path.read_text().count("\n// launch ") + path.read_text().startswith("// launch ")
        assert golden(path).read_text().count("\nlaunch of ") == asked
