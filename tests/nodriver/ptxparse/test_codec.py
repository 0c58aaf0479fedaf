"""Access programs to JSON and back."""

from __future__ import annotations

import json

import pytest

from ptxparse.api import AccessProgram, analyze, evaluate, parse
from ptxparse.codec import SCHEMA, ProgramFormatError, program_from_json, program_from_plain, program_to_json
from ptxparse.program import VERSION
from tessera.reasons import Reason
from tests.ptxtext import corpus_files, fixture_files
from tests.small_kernels import small

FILES = [path for path in fixture_files() + corpus_files() if path.stat().st_size < 60_000]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_programs_come_back_as_they_were(path: object) -> None:
    for program in analyze(parse(path.read_text())):  # type: ignore[attr-defined]
        text = program_to_json(program)
        back = program_from_json(text)
        assert back == program and back.digest == program.digest and hash(back) == hash(program)
        assert program_to_json(back) == text
        for name in program.__dataclass_fields__:
            assert getattr(back, name) == getattr(program, name), name


def saxpy() -> AccessProgram:
    return small("mov.u32 %r1, %tid.x; setp.ge.s32 %p1, %r1, %n; @%p1 bra END; mul.wide.u32 %rd1, %r1, 4; "
                 "add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2], %r1; END: ret;", "a:u64 n:s32").program


def test_a_program_read_back_evaluates_the_same() -> None:
    program = saxpy()
    back = program_from_json(program_to_json(program))
    where = [("heap", 0x1000, 4096)]
    params = (0x1100).to_bytes(8, "little") + (9).to_bytes(4, "little")
    first, again = (evaluate(p, (1, 1, 1), (32, 1, 1), params, where) for p in (program, back))
    assert again == first and again.ranges[0].hi == 0x100 + 36


def test_reasons_come_back_as_reasons() -> None:
    spin = "L: ld.volatile.global.u32 %r1, [%a]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;"
    program = small(f"{spin} call nothing; ret;").program
    back = program_from_json(program_to_json(program))
    assert back.opaque is Reason.UNDEFINED_CALLEE
    assert [reason for reason, _ in back.pinned] == [Reason.VOLATILE_ACCESS]


def test_the_object_names_its_schema_and_version() -> None:
    plain = json.loads(program_to_json(saxpy()))
    assert plain["schema"] == SCHEMA and plain["version"] == VERSION and plain["kernel"] == "k"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "5", '"x"', "{}", '{"schema": "something.else"}',
                                  json.dumps({"schema": SCHEMA}), json.dumps({"schema": SCHEMA, "version": VERSION})])
def test_what_is_no_program_is_an_error(text: str) -> None:
    with pytest.raises(ProgramFormatError):
        program_from_json(text)


def test_another_version_is_an_error_that_says_what_to_do() -> None:
    plain = json.loads(program_to_json(saxpy())) | {"version": VERSION + 1}
    with pytest.raises(ProgramFormatError, match="analyse again"):
        program_from_plain(plain)


@pytest.mark.parametrize("name", [name for name in AccessProgram.__dataclass_fields__ if name != "version"])
def test_a_missing_member_is_an_error(name: str) -> None:
    plain = json.loads(program_to_json(saxpy()))
    del plain[name]
    with pytest.raises(ProgramFormatError):
        program_from_plain(plain)


@pytest.mark.parametrize(("name", "value"), [("opaque", "no such reason"), ("accesses", 5), ("accesses", [[1, 2]]),
                                             ("loops", [[0]]), ("pinned", [["nothing", 3]]), ("parameters", [["x"]])])
def test_a_wrong_member_is_an_error(name: str, value: object) -> None:
    plain = json.loads(program_to_json(saxpy())) | {name: value}
    with pytest.raises(ProgramFormatError):
        program_from_plain(plain)
