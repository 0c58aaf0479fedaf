"""The coverage page equals the list."""

from __future__ import annotations

import pytest

from tessera.driver_api import DONE, REFUSED
from tests.documents import driver_rows, table_rows
from tests.material import ROOT


@pytest.mark.parametrize(("heading", "status"), [("function", DONE), ("refused function", REFUSED)])
def test_coverage_page(heading: str, status: str) -> None:
    page = ROOT / "docs" / "driver-coverage.md"
    assert table_rows(page, heading) == driver_rows(status), "python -m tests.documents writes it anew"
