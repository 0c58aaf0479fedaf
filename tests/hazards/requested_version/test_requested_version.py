"""P3, P4: a program that was built for one version of CUDA gets the form of another; looking for suffixes finds the
wrong one in 12.x and none in 13.x.

What a program gets is the form of the version that it asks for, also from drivers that are older or newer than that,
and from a driver that gives addresses which its symbol table has not."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tessera.driver_api import by_name, form_of
from tests import null_driver
from tests.hazards.kit import LIBRARY, run

HERE = Path(__file__).resolve().parent
NEWEST = 13000
CTX_CREATE = {11030: "cuCtxCreate_v2", 11080: "cuCtxCreate_v3", 12000: "cuCtxCreate_v3", 12090: "cuCtxCreate_v4",
              13000: "cuCtxCreate_v4"}


def given(version: int, flags: int, library: Path) -> dict[str, list[str | None]]:
    done = run([sys.executable, HERE / "program.py", json.dumps(sorted(by_name())), str(version), str(flags)],
               library=library)
    assert (done.status, done.errors) == (0, "")
    found: dict[str, list[str | None]] = json.loads(done.output)
    return found


@pytest.mark.parametrize("flags", [0, 2])
@pytest.mark.parametrize(("version", "driver"), [(11030, 11080), (11080, 11080), (12000, 11080), (12000, 12090),
                                                 (12090, 13000), (13000, 13000), (13030, 13000)])
def test_programs_get_the_form_of_their_version(version: int, driver: int, flags: int) -> None:
    found = given(version, flags, null_driver.build(version=driver))
    expected = {name: form_of(name, min(version, driver), flags == 2) for name in by_name()}
    assert found == {name: [form.symbol, str(LIBRARY)] if form else [None, None] for name, form in expected.items()}


@pytest.mark.parametrize("version", CTX_CREATE)
def test_the_forms_of_one_that_changed_often(version: int) -> None:
    found = given(version, 0, null_driver.build(version=NEWEST))
    assert found["cuCtxCreate"] == [CTX_CREATE[version], str(LIBRARY)]


@pytest.mark.parametrize("version", [11080, 13000])
def test_a_driver_with_other_addresses(version: int) -> None:
    found = given(version, 2, null_driver.build([HERE / "elsewhere.c"]))
    expected = {name: form.symbol for name in by_name() if (form := form_of(name, version, True))}
    assert {name: symbol for name, (symbol, file) in found.items() if file == str(LIBRARY)} == expected
