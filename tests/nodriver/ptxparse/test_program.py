"""Access programs as plain data: equality, digests that are the same in every process, what the fields say."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace

import pytest

from ptxparse.api import AccessProgram, analyze, parse
from ptxparse.program import Access, Base
from ptxparse.rewrite import arguments
from tests.material import ROOT
from tests.ptxtext import corpus_files, fixture_files
from tests.small_kernels import small

FILES = [path for path in fixture_files() + corpus_files() if path.stat().st_size < 60_000]
LOOP = """
    mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
    L: mad.lo.s32 %r3, %r2, %n, %r1; mul.wide.s32 %rd1, %r3, 4; add.s64 %rd2, %a, %rd1; st.global.u32 [%rd2+8], %r1;
    add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, %n; @%p1 bra L; ret;
"""


def programs(path: object) -> list[AccessProgram]:
    return analyze(parse(path.read_text()))  # type: ignore[attr-defined]


def test_the_same_text_gives_the_same_program() -> None:
    for path in FILES[:8]:
        once, again = programs(path), programs(path)
        assert once == again and [p.digest for p in once] == [p.digest for p in again]
        assert len({*once, *again}) == len({p.digest for p in once})


def test_digests_are_the_same_in_every_process() -> None:
    paths = [str(path) for path in FILES[:4]]
    script = ("import sys; from pathlib import Path; from ptxparse.api import analyze, parse\n"
              "for path in sys.argv[1:]:\n"
              "    for program in analyze(parse(Path(path).read_text())): print(program.digest)")
    outputs = {
        subprocess.run([sys.executable, "-c", script, *paths], cwd=ROOT, env={"PYTHONHASHSEED": seed, "PATH": ""},
                       capture_output=True, text=True, check=True).stdout
        for seed in ("0", "77")
    }
    here = "".join(f"{program.digest}\n" for path in FILES[:4] for program in programs(path))
    assert outputs == {here}


def test_the_digest_depends_on_every_field() -> None:
    program = small(LOOP, "a:u64 n:s32").program
    others: dict[str, object] = {
        "kernel": "other", "line": 99, "parameters": (), "parameter_bytes": 1, "nodes": (), "low": (), "high": (),
        "uniform": (), "loops": (), "accesses": (), "global_sizes": {"x": 4}, "escapes": ((0, 1),),
        "opaque_line": 7, "problems": (("x", 1),), "pinned": (("x", 1),), "deterministic": not program.deterministic,
        "device_invariant": not program.device_invariant, "work": (), "unresolved": 3, "version": 77,
        "opaque": "texture",
    }  # fmt: skip
    assert {field.name for field in fields(program)} == set(others)
    digests = {replace(program, **{name: value}).digest for name, value in others.items()}  # type: ignore[arg-type]
    assert len(digests) == len(others) and program.digest not in digests


def test_programs_differ_when_kernels_do() -> None:
    program = small(LOOP, "a:u64 n:s32").program
    assert program != small(LOOP.replace("+8", "+12"), "a:u64 n:s32").program
    assert program == small(LOOP, "a:u64 n:s32").program
    assert program != "something else"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_atoms_come_before_their_users_and_loops_are_named(path: object) -> None:
    for program in programs(path):
        count = len(program.nodes)
        assert count == len(program.low) == len(program.high) == len(program.uniform)
        for number, node in enumerate(program.nodes):
            below = [atom for value in arguments(node) for product, _ in value for atom in product]
            assert all(atom < number for atom in below)
            assert program.low[number] < program.high[number]
            # Neither belongs into a program: both are resolved by the passes before.
            assert node[0] not in ("phi", "provided")
            if program.uniform[number]:
                assert all(program.uniform[atom] for atom in below)
        for access in program.accesses:
            check_access(program, access)
        for loop in program.loops:
            assert program.nodes[loop.counter][0] == "loop"


def check_access(program: AccessProgram, access: Access) -> None:
    assert access.bases and access.kind in "RWA" and access.lines and access.instructions >= len(access.lines)
    assert list(access.spans) == sorted(access.spans)
    assert all(low < high for low, high in access.spans)
    assert all(a[1] < b[0] for a, b in zip(access.spans, access.spans[1:], strict=False))
    assert all(atom < len(program.nodes) for product, _ in access.offset for atom in product)
    assert all(product for product, _ in access.offset), "a constant belongs to the spans"
    assert all(loop < len(program.loops) for loop in access.loops)
    # A pointer is an addend of the offset; offsets into a module variable count from its start.
    addends = [program.nodes[product[0]] for product, c in access.offset if len(product) == 1 and c == 1]
    for base in access.bases:
        if base.name:
            assert base.name in program.global_sizes
        else:
            assert any(node[:3] == ("param", base.word, 8) for node in addends)


def test_a_program_says_what_the_kernel_does() -> None:
    program = small(LOOP, "a:u64 n:s32").program
    assert (program.kernel, program.parameter_bytes, program.opaque, program.unresolved) == ("k", 12, None, 0)
    assert [(p.name, p.type, p.offset, p.size) for p in program.parameters] == [("a", "u64", 0, 8), ("n", "s32", 8, 4)]
    (access,) = program.accesses
    assert (access.kind, access.bases, access.spans, access.instructions) == ("W", (Base(0),), ((8, 12),), 1)
    (loop,) = program.loops
    assert access.loops == (0,) and loop.exact and len(loop.limits) == 1
    assert program.counts["bytes_written"] == 4


def test_accesses_that_differ_by_a_constant_are_one() -> None:
    stores = "".join(f"st.global.u32 [%rd2+{offset}], %r1;" for offset in (0, 4, 16, 20))
    program = small(f"mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 64; add.s64 %rd2, %a, %rd1; {stores} "
                    "st.global.u32 [%a], %r1; ld.global.u32 %r2, [%rd2]; ret;").program
    found = [(a.kind, a.spans, a.instructions) for a in program.accesses]
    assert sorted(found) == [("R", ((0, 4),), 1), ("W", ((0, 4),), 1), ("W", ((0, 8), (16, 24)), 4)]
