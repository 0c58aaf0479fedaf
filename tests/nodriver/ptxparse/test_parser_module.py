"""Module level: version and target, functions and prototypes, directives, noise."""

from __future__ import annotations

import pytest

from ptxparse.errors import PtxError
from ptxparse.model import Register, Symbol, Vector
from ptxparse.parser import NEWEST_VERSION, parse
from tests.ptxtext import HEADER, instructions, kernel, module


def test_version_targets_and_address_size() -> None:
    parsed = parse(".version 7.8\n.target sm_90a, debug, texmode_independent\n.address_size 32\n")
    assert (parsed.version, parsed.targets, parsed.address_size) == (
        (7, 8), ("sm_90a", "debug", "texmode_independent"), 32,
    )  # fmt: skip
    assert parsed.notes == []
    assert parse(".version 6.0\n.target sm_70\n.address_size 64").address_size == 64


def test_a_newer_version_is_parsed_and_reported() -> None:
    parsed = parse(".version 77.1\n.target sm_999\n.address_size 64\n.visible .entry k() { ret; }\n")
    assert parsed.version == (77, 1)
    assert [note.kind for note in parsed.notes] == ["newer version"]
    assert "77.1" in parsed.notes[0].text and parsed.notes[0].line == 1
    assert len(parsed.entries) == 1
    major, minor = NEWEST_VERSION
    assert parse(f".version {major}.{minor}\n.target sm_80\n").notes == []


def test_trailing_nul_bytes_of_an_image_do_not_matter() -> None:
    assert parse(HEADER + ".visible .entry k() { ret; }\n\0\0\0").entries[0].name == "k"


@pytest.mark.parametrize("linkage", ["", "extern", "visible", "weak"])
def test_functions_and_their_linkage(linkage: str) -> None:
    dotted = f".{linkage} " if linkage else ""
    parsed = module(f"{dotted}.func f;\n{dotted}.func f() {{ ret; }}\n{dotted}.entry k { '{ ret; }' }")
    assert [(f.name, f.is_entry, f.linkage, f.instructions is None) for f in parsed.functions] == [
        ("f", False, linkage, True), ("f", False, linkage, False), ("k", True, linkage, False),
    ]  # fmt: skip
    assert parsed.function("f") is parsed.functions[1]
    assert parsed.entries == [parsed.functions[2]]
    assert parsed.function("nothing") is None


def test_lines_of_functions() -> None:
    parsed = module(".visible .func f\n(\n)\n{\n\tret;\n\n}\n\n.visible .entry k()\n{\nret;\n}")
    assert [(f.line, f.end_line) for f in parsed.functions] == [(4, 10), (12, 15)]


def test_results_and_parameters_of_functions() -> None:
    parsed = module(
        """
        .extern .func (.param .b32 func_retval0) vprintf (.param .b64 vprintf_param_0, .param .b64 vprintf_param_1) ;
        .visible .func (.reg .u32 %out) twice (.reg .u32 %in, .reg .pred p)
        { add.u32 %out, %in, %in; @p ret; ret; }
        .func (.param .align 16 .b8 r[16]) wide (.param .align 16 .b8 a[32], .param .align 8 .b8 va[]) { ret; }
        """
    )
    vprintf, twice, wide = parsed.functions
    assert [(v.name, v.type, v.space, v.size) for v in vprintf.results] == [("func_retval0", "b32", "param", 4)]
    assert [v.name for v in vprintf.parameters] == ["vprintf_param_0", "vprintf_param_1"]
    assert twice.instructions is not None
    assert twice.instructions[0].operands == (Register("%out"), Register("%in"), Register("%in"))
    assert twice.instructions[1].predicate == Register("p")
    assert (twice.register_type("%in"), twice.register_type("p")) == ("u32", "pred")
    assert (wide.results[0].size, wide.results[0].align, wide.parameters[0].size) == (16, 16, 32)
    assert (wide.parameters[1].dims, wide.parameters[1].size) == ((None,), 0)


def test_performance_directives() -> None:
    parsed = module(
        """.visible .entry k(.param .u64 a)
        .maxntid 128, 2, 1
        .minnctapersm 2
        .maxnreg 0x40 .reqntid 128,2,1
        .explicitcluster .reqnctapercluster 2, 1, 1 .maxclusterrank 8 .blocksareclusters
        .pragma "nounroll", "enable_smem_spilling";
        { ret; }
        .func f() .noreturn .abi_preserve 4 { trap; }
        """
    )
    assert parsed.functions[0].directives == {
        "maxntid": (128, 2, 1), "minnctapersm": (2,), "maxnreg": (64,), "reqntid": (128, 2, 1),
        "explicitcluster": (), "reqnctapercluster": (2, 1, 1), "maxclusterrank": (8,), "blocksareclusters": (),
    }  # fmt: skip
    assert parsed.functions[1].directives == {"noreturn": (), "abi_preserve": (4,)}
    assert parsed.notes == []


def test_alias() -> None:
    parsed = module(".func f() { ret; }\n.alias g, f;\n")
    assert parsed.aliases == {"g": "f"}
    assert parsed.function("g") is parsed.functions[0]


def test_attributes_of_functions_and_variables() -> None:
    parsed = module(
        ".global .attribute(.managed) .align 8 .u64 m[2];\n"
        ".func .attribute(.unified(0xAB, 0xCD)) f() { ret; }\n"
        ".visible .global .attribute(.managed, .unified(1,2)) .u32 n = 5;\n"
    )
    assert [(v.name, v.align, v.size) for v in parsed.variables] == [("m", 8, 16), ("n", 4, 4)]
    assert parsed.functions[0].name == "f"
    assert [(n.kind, n.text) for n in parsed.notes] == [("attribute", "m"), ("attribute", "n")]


def test_debugging_noise_is_passed_over() -> None:
    parsed = module(
        """
        .file 1 "/a/b //c {;.cu", 1700000000, 42
        .visible .entry k()
        {
        .reg .b32 %r<3>;
        .loc 1 5 3
        mov.u32 %r1, 1; // a comment { ; "
        .loc 1 6 3, function_name $L__info_string0, inlined_at 1 5 3
        $L__tmp0:
        .loc_intermediate 1 2 3
        mov.u32 %r2, 2;
        .pragma "nounroll";
        ret;
        }
        .section .debug_abbrev
        {
        .b8 1, 17, 1 // } not the end
        .b8 "}{"
        {
        }
        }
        .section .debug_str { $L__info_string0: .b8 99,0 }
        .section .debug_macinfo { }
        """
    )
    found = parsed.functions[0].instructions
    assert found is not None
    assert [(i.mnemonic, i.line) for i in found] == [("mov.u32", 10), ("mov.u32", 14), ("ret", 16)]
    assert parsed.functions[0].labels == {"$L__tmp0": 1}
    assert parsed.notes == []


@pytest.mark.parametrize(
    ("directive", "note"),
    [
        (".frobnicate 1, 2;", ".frobnicate 1, 2"),
        (".language C++", ".language C++"),
        ('.spell "a;b{" x', '.spell "a;b{" x'),
        ('.spell "a"; // ;', '.spell "a"'),
        (".table foo { 1, { 2 }, \"}\" }", ".table foo"),
    ],
)
def test_unknown_directives_of_modules_are_recorded(directive: str, note: str) -> None:
    parsed = module(f".global .u32 before;\n{directive}\n.global .u32 after;\n")
    assert [v.name for v in parsed.variables] == ["before", "after"]
    assert [(n.kind, n.text, n.line) for n in parsed.notes] == [("unknown directive", note, 5)]


@pytest.mark.parametrize(
    "directive",
    [".frobnicate 1, 2;", ".frobnicate %r1", '.frobnicate "a ; } b";', ".frobnicate { 1, 2 }", ".frobnicate"],
)
def test_unknown_directives_of_bodies_are_recorded(directive: str) -> None:
    parsed = module(f".entry k()\n{{\nbar.sync 0;\n{directive}\nret;\n}}\n.global .u32 after;\n")
    found = parsed.functions[0].instructions
    assert found is not None
    assert [(i.opcode, i.line) for i in found] == [("bar", 6), ("ret", 8)]
    assert parsed.variables[0].name == "after"
    assert len(parsed.notes) == 1
    assert (parsed.notes[0].kind, parsed.notes[0].line) == ("unknown directive", 7)
    assert parsed.notes[0].text.startswith(".frobnicate")


@pytest.mark.parametrize("directive", [".shiny", ".shiny 1, 2", ".shiny wide(3, 4)", ".shiny 5 .noreturn"])
def test_unknown_directives_of_functions_are_recorded(directive: str) -> None:
    parsed = module(f".entry k() {directive} .maxntid 32 {{ ret; }}\n")
    assert parsed.functions[0].directives["maxntid"] == (32,)
    assert [n.text for n in parsed.notes] == [".shiny"]


def test_unknown_opcodes_are_instructions_like_any_other() -> None:
    (found,) = instructions("frobnicate.sideways.b32 %r1, {%r2, %r3}, [%rd1+4], q;")
    assert found.opcode == "frobnicate" and found.modifiers == ("sideways", "b32")
    assert found.operands[0] == Register("%r1") and len(found.operands) == 4


def test_call_prototypes_and_target_lists() -> None:
    k = kernel(
        """
        Fproto: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[16]) .noreturn;
        none: .callprototype _ ();
        list: .calltargets f, g;
        table: .branchtargets L1, L2 ,L1;
        brx.idx %r1, table;
        L1: ret;
        L2: exit;
        """
    )
    results, parameters = k.prototypes["Fproto"]
    assert [(v.type, v.size) for v in results] == [("b32", 4)]
    assert [(v.type, v.size) for v in parameters] == [("b64", 8), ("b8", 16)]
    assert k.prototypes["none"] == ((), ())
    assert k.branch_targets == {"list": ("f", "g"), "table": ("L1", "L2", "L1")}
    assert k.instructions is not None
    assert k.instructions[0].operands == (Register("%r1"), Symbol("table"))
    assert (k.labels["L1"], k.labels["L2"]) == (1, 2)


@pytest.mark.parametrize(
    ("text", "results", "target", "arguments", "prototype"),
    [
        ("call f;", (), Symbol("f"), (), ""),
        ("call.uni f, (a);", (), Symbol("f"), (Symbol("a"),), ""),
        ("call.uni (r), f;", (Symbol("r"),), Symbol("f"), (), ""),
        ("call (r), f, ();", (Symbol("r"),), Symbol("f"), (), ""),
        ("call.uni ( %r1 ) , f , ( %r2 , %r3 ) ;", (Register("%r1"),), Symbol("f"),
         (Register("%r2"), Register("%r3")), ""),
        ("call (r0), %rd1, (p0, p1), proto;", (Symbol("r0"),), Register("%rd1"), (Symbol("p0"), Symbol("p1")), "proto"),
        ("call \n(\nr0\n), \nf, \n(\np0, \np1\n)\n;", (Symbol("r0"),), Symbol("f"), (Symbol("p0"), Symbol("p1")), ""),
        ("call %rd1, (%r1), list;", (), Register("%rd1"), (Register("%r1"),), "list"),
    ],
)  # fmt: skip
def test_calls_always_have_four_operands(text, results, target, arguments, prototype) -> None:
    (found,) = instructions(text)
    assert found.opcode == "call"
    assert found.operands == (Vector(results), target, Vector(arguments), Symbol(prototype))


def test_comments_may_stand_anywhere() -> None:
    text = """// first
    .version /* a */ 8.0 // b
    /* over
       two lines */ .target /**/ sm_80 /* , debug */
    .address_size//
    64
    .visible/*x*/.entry/*y*/k/*z*/(/**/.param/**/.u64/**/a/**/)/* " */ // " {
    {/*{*/
      .reg/**/.b32/**/%r<4>/**/;
      add.s32 /* ; */ %r1, // %r9,
         %r2/**/, /* 3 */ 4 /* // */;
      @/**/%p1/**/bra/**/L/**/;
    L/**/: ret//;
    ;}
    """
    parsed = parse(text)
    (k,) = parsed.functions
    assert k.instructions is not None
    assert [(i.mnemonic, i.line) for i in k.instructions] == [("add.s32", 10), ("bra", 12), ("ret", 13)]
    assert k.labels == {"L": 2} and (k.line, k.end_line) == (7, 14)


def test_strings_may_hold_comment_marks_and_braces() -> None:
    parsed = module(
        '.file 1 "http://x/*y.cu"\n.entry k() .pragma "// { \'"; { .pragma "}; /*"; ret; }\n.global .u32 x;'
    )
    assert parsed.variables[0].name == "x" and parsed.variables[0].line == 6


def test_carriage_returns_and_tabs_are_blanks() -> None:
    text = HEADER + ".visible .entry k()\n{\n\t.reg .b32 \t%r<3>;\n\tmov.u32 \t%r1, 7;\n\tret;\n}\n"
    plain, dos = parse(text), parse(text.replace("\n", "\r\n"))
    assert plain.functions[0].instructions == dos.functions[0].instructions
    assert dos.functions[0].instructions is not None
    assert [i.line for i in dos.functions[0].instructions] == [7, 8]


def test_a_module_must_begin_with_its_version() -> None:
    for text in ("", "   \n", "// nothing\n", ".target sm_80\n", "int main() {}"):
        with pytest.raises(PtxError, match=r"expected \.version"):
            parse(text)
