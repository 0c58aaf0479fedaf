"""Many threads make and end things, whose handles and addresses the driver gives to others at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shim.wire import Kind
from tests.material import ROOT
from tests.nodriver.shim.living import living
from tests.nodriver.shim.observed import Observed, observe
from tests.nodriver.shim.programs import linked, watched
from tools import native


def program(folder: Path, kind: str = "") -> Path:
    return linked("churn", folder, kind, f"-I{ROOT / 'shim'}")


@pytest.mark.parametrize("reuse", [False, True])
def test_the_records_say_what_is_left(tmp_path: Path, *, reuse: bool) -> None:
    check(observe([program(tmp_path), "6", "1500"], reuse=reuse))


@pytest.mark.long
@pytest.mark.parametrize("kind", native.SANITIZERS)
def test_under_sanitizers(kind: str, tmp_path: Path) -> None:
    check(observe([program(tmp_path, kind), "6", "300"], **watched(kind)))


def check(seen: Observed) -> None:
    assert seen.status == 0, seen.errors
    told = {(kind, handle) for kind, handle in json.loads(seen.output)}
    alive = {(int(key[0]), int(key[1])) for key in living(seen.records) if key[0] is not Kind.DEVICE}
    assert alive == told
    assert len(told) > 20
