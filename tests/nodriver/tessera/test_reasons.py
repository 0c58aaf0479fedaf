"""The closed list of reasons: its shape, and its documentation."""

from __future__ import annotations

import json
import pickle
import re

import pytest

from tessera.reasons import Kind, Reason, reasons
from tests.documents import reason_rows, table_rows
from tests.material import ROOT


@pytest.mark.parametrize("reason", list(Reason))
def test_value_is_its_name_in_lower_case_and_meaning_is_a_sentence(reason: Reason) -> None:
    assert reason.value == reason.name.lower()
    assert re.fullmatch(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*", reason.value)
    assert re.fullmatch(r"[A-Z].*\.", reason.meaning)


def test_meanings_differ() -> None:
    assert len({reason.meaning for reason in Reason}) == len(Reason)


def test_reasons_survive_json_and_pickle() -> None:
    for reason in Reason:
        assert Reason(json.loads(json.dumps(reason))) is reason
        assert pickle.loads(pickle.dumps(reason)) is reason


def test_an_unknown_reason_is_refused() -> None:
    with pytest.raises(ValueError, match="no_such_reason"):
        Reason("no_such_reason")


def test_kinds_divide_the_list() -> None:
    assert [reason for kind in Kind for reason in reasons(kind)] == list(Reason)


def test_documented_table_equals_the_code() -> None:
    written = table_rows(ROOT / "docs" / "reasons.md", "reason")
    assert written == reason_rows(), "to write it anew: .venv/bin/python -m tests.documents"
