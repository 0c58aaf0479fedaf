"""Access programs kept on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

import ptxparse.cache as cache
from ptxparse.cache import ProgramCache, analysis_version, content_hash
from ptxparse.errors import PtxError
from tests.small_kernels import text_of

TEXT = text_of("st.global.u32 [%a], 1; ret;")
OTHER = text_of("st.global.u32 [%a+4], 1; ret;")


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_module_is_analysed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ProgramCache(tmp_path / "made" / "here").programs(TEXT)
    assert [p.kernel for p in first] == ["k"]

    def never(*_: object) -> None:
        raise AssertionError("analysed again")

    monkeypatch.setattr(cache, "analyze_kernel", never)
    assert ProgramCache(tmp_path / "made" / "here").programs(TEXT) == first
    with pytest.raises(AssertionError, match="analysed again"):
        ProgramCache(tmp_path / "made" / "here").programs(OTHER)


def test_entries_are_named_by_content_and_version(tmp_path: Path) -> None:
    programs = ProgramCache(tmp_path)
    programs.programs(TEXT)
    programs.programs(OTHER)
    programs.programs(TEXT, "another/name.ptx")
    assert entries(tmp_path) == sorted(f"{content_hash(text)}.{analysis_version()}.json" for text in (TEXT, OTHER))
    assert content_hash(TEXT) != content_hash(TEXT + " ")


@pytest.mark.parametrize("damage", ["", "[", "[{}]", "{}", "null", "[null]", '[{"schema": "tessera.access-program"}]'])
def test_a_damaged_entry_is_made_anew(tmp_path: Path, damage: str) -> None:
    wanted = ProgramCache(tmp_path).programs(TEXT)
    (entry,) = tmp_path.iterdir()
    whole = entry.read_text()
    entry.write_text(damage)
    assert ProgramCache(tmp_path).programs(TEXT) == wanted
    assert entry.read_text() == whole
    entry.write_bytes(b"\xff\xfe\x80")
    assert ProgramCache(tmp_path).programs(TEXT) == wanted


def test_an_entry_cut_short_is_made_anew(tmp_path: Path) -> None:
    wanted = ProgramCache(tmp_path).programs(TEXT)
    (entry,) = tmp_path.iterdir()
    whole = entry.read_text()
    for length in range(0, len(whole), 97):
        entry.write_text(whole[:length])
        assert ProgramCache(tmp_path).programs(TEXT) == wanted


def test_malformed_text_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(PtxError):
        ProgramCache(tmp_path).programs(".version 8.0\n.target sm_80\n.entry {")
    assert entries(tmp_path) == []


def test_an_empty_module_is_remembered_too(tmp_path: Path) -> None:
    text = ".version 8.0\n.target sm_80\n.address_size 64\n"
    assert ProgramCache(tmp_path).programs(text) == []
    assert len(entries(tmp_path)) == 1 and ProgramCache(tmp_path).programs(text) == []


def test_text_that_is_no_unicode_has_a_name_too() -> None:
    assert content_hash("\udcff") != content_hash("\udcfe")
