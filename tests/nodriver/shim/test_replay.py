"""Traces of programs that never ran, done again on the software driver; what differs, is missing or hangs is said."""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import softgpu
from orchestrator.traces.errors import ReplayDeadline, ReplayError
from orchestrator.traces.reader import Trace
from orchestrator.traces.replay.extents import Extent, pages
from orchestrator.traces.replay.parent import Request, replay
from orchestrator.traces.replay.report import Report
from shim import tails
from shim.wire import Kind, NodeKind, lib
from tessera.cli import app
from tessera.errors import ExitCode, TesseraError
from tests.material import ROOT
from tests.program_records import (
    CONTEXT,
    SAXPY,
    SAXPY_PARAMETERS,
    Program,
    saxpy_parameters,
    side,
    write,
)

SCHEMA = json.loads((ROOT / "docs" / "schema" / "replay.json").read_text(encoding="utf-8"))
PTX = (ROOT / "examples" / "kernels.ptx").read_bytes()
FLEET = "A100-80G:memory_gib=1,L40S:memory_gib=1;from=A100-80G:to=L40S:bandwidth_gb_s=23:peer=true"
Y, X, N = 0x7E81_2300_0000, 0x7E81_2300_0200, 64
SPIN = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry spin(.param .u64 flag) {
 .reg .pred %p; .reg .b32 %r; .reg .b64 %a;
 ld.param.u64 %a, [flag];
again:
 ld.volatile.global.u32 %r, [%a];
 setp.eq.u32 %p, %r, 0;
 @%p bra again;
 ret;
}
"""
Run = Callable[..., Report]


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    base = {**os.environ, "PYTHONPATH": str(ROOT)}
    return softgpu.environment(FLEET, cache=tmp_path_factory.mktemp("cache"), base=base)


@pytest.fixture
def run(variables: Mapping[str, str], tmp_path: Path) -> Run:
    def once(*programs: Program, **how: Any) -> Report:
        path = write(tmp_path / "a.trace", *programs)
        try:
            return replay(Request(path, **{"verify": True, "seconds": 60.0, **how}), variables)
        finally:
            path.unlink()

    return once


def begun(number: int = 1) -> Program:
    """A program with two vectors and a kernel."""
    program = Program(number)
    program.begin()
    program.module(PTX)
    program.function("saxpy", SAXPY_PARAMETERS)
    program.memory(Y, 4 * N)
    program.memory(X, 4 * N)
    return program


def usual(number: int = 1) -> tuple[Program, np.ndarray[Any, np.dtype[np.float32]]]:
    """The program when it has run three times; what stands in its vector y."""
    program = begun(number)
    x, y = np.arange(N, dtype=np.float32), np.ones(N, np.float32)
    program.to_device(X, x.tobytes())
    program.to_device(Y, y.tobytes())
    for _ in range(3):
        program.launch(saxpy_parameters(Y, X, 2.0, N))
        y += 2 * x
        program.to_host(Y, y.tobytes())
    return program, y


@pytest.mark.parametrize("fixed", [True, False])
def test_launches_and_copies(run: Run, fixed: bool) -> None:
    program, _ = usual()
    program.free(X)
    report = run(program, fixed=fixed)
    assert (report.launches, report.copies, report.verified, report.mismatched) == (3, 5, 3, 0)
    assert not report.skipped and not report.doubts
    assert report.rebased == {"analysed": 0 if fixed else 6, "guessed": 0}
    assert report.allocations == ({"recorded": 2, "elsewhere": 0} if fixed else {"recorded": 0, "elsewhere": 2})


def test_bytes_that_differ_are_found(run: Run) -> None:
    program, y = usual()
    program.launch(saxpy_parameters(Y, X, 2.0, N))
    number = program.to_host(Y, y.tobytes())  # as if the launch before had done nothing
    report = run(program)
    assert (report.verified, report.mismatched) == (3, 1)
    (found,) = report.mismatches
    assert (found.client, found.sequence, found.kernel, found.bytes) == (1, number, "saxpy", 4 * N)
    assert found.expected != found.found
    assert run(program, verify=False).mismatched == 0


def test_one_gpu_for_everything(run: Run) -> None:
    program, _ = usual()
    assert run(program, device=1).verified == 3
    with pytest.raises(ReplayError, match="GPUs 0 to 1"):
        run(program, device=2)


def test_clients_one_after_the_other_or_one(run: Run) -> None:
    first, second = usual(1)[0], usual(2)[0]
    assert run(first, second).verified == 6
    assert run(first, second, client=2).clients == 1
    with pytest.raises(ReplayError, match="no client 3; there are: 1, 2"):
        run(first, second, client=3)


def test_addresses_that_are_used_again_hold_zeros(run: Run) -> None:
    program = begun()
    for size in (4 * N, 2 * N):
        program.to_host(Y, bytes(2 * N))
        program.to_device(Y, bytes(range(2 * N % 256)) or b"1")
        program.free(Y)
        program.memory(Y, size)
    report = run(program)
    assert (report.verified, report.mismatched) == (2, 0)


def test_memory_in_stream_order_and_streams_with_events(run: Run) -> None:
    program = begun()
    for handle in (0x51, 0x52):
        program.record(Kind.STREAM, handle=handle, context=CONTEXT, flags=1)
    program.record(Kind.EVENT, handle=0xE1, context=CONTEXT)
    a = 0x7E91_0000_0000
    for value in (1, 2, 3):
        program.memory(a, 256, lib.WIRE_POOLED, stream=0x51)
        set_ = {"address": a, "width": 64, "height": 1, "element_bytes": 4, "value": value}
        program.record(Kind.SET, place=(0x51, CONTEXT), **set_)
        program.record(Kind.EVENT_RECORD, place=(0x51, CONTEXT), event=0xE1)
        program.record(Kind.EVENT_WAIT, place=(0x52, CONTEXT), event=0xE1)
        number = program.record(
            Kind.COPY, place=(0x52, CONTEXT), width=256, height=1, depth=1, to=side(0x6000, lib.WIRE_SIDE_HOST),
            from_=side(a, lib.WIRE_SIDE_DEVICE), content_kind=lib.WIRE_LATER_CONTENT)
        program.record(Kind.SYNCHRONIZE, place=(0x52, CONTEXT), what=lib.WIRE_WAITED_STREAM)
        program.outcome(number, struct.pack("<I", value) * 64)
        program.ended(Kind.MEMORY, a, stream=0x51)
    for fixed in (True, False):
        report = run(program, fixed=fixed)
        assert (report.verified, report.mismatched, report.memsets) == (3, 0, 3)


def test_memory_that_is_freed_while_it_is_used(run: Run) -> None:
    """The next allocation at the address does not disturb what still reads there: the function waits."""
    program = begun()
    program.record(Kind.STREAM, handle=0x51, context=CONTEXT, flags=1)
    size = 32 << 20
    a, b = 0x7E91_0000_0000, 0x7E92_0000_0000
    program.memory(b, size)
    for value in (1, 2, 3):
        program.memory(a, size)
        place = (0x51, CONTEXT)
        program.record(Kind.SET, place=place, address=a, width=size, height=1, element_bytes=1, value=value)
        program.record(Kind.COPY, place=place, width=size, height=1, depth=1, to=side(b, lib.WIRE_SIDE_DEVICE),
                       from_=side(a, lib.WIRE_SIDE_DEVICE))
        program.free(a)
    program.to_host(b, bytes([3]) * size)
    for fixed in (True, False):
        report = run(program, fixed=fixed)
        assert (report.verified, report.mismatched) == (1, 0)


def test_copies_of_two_and_three_dimensions(run: Run) -> None:
    program = begun()
    area = bytes(range(256)) * 2
    a = 0x7E91_0000_0000
    program.memory(a, 1024)
    program.to_device(a, area)
    shape = {"width": 4, "height": 3, "depth": 2}
    number = program.record(
        Kind.COPY, **shape, to=side(0x6000, lib.WIRE_SIDE_HOST, pitch=8, height=5),
        from_=side(a, lib.WIRE_SIDE_DEVICE, x=2, y=1, z=1, pitch=16, height=8), flags=lib.WIRE_SYNCHRONOUS,
        content_kind=lib.WIRE_LATER_CONTENT)
    rows = [2 + 16 * (1 + line + 8 * (1 + level)) for level in range(2) for line in range(3)]
    program.outcome(number, b"".join([area[start : start + 4] for start in rows]))
    report = run(program)
    assert (report.verified, report.mismatched) == (1, 0)


def test_arrays_of_pixels(run: Run) -> None:
    program = begun()
    program.record(Kind.ARRAY, handle=0xAA, context=CONTEXT, width=16, height=4, format=1, channels=1, element_bytes=1)
    data = bytes(range(64))
    name = program.payload(data)
    array = side(0xAA, lib.WIRE_SIDE_ARRAY)
    program.record(Kind.COPY, width=16, height=4, depth=1, to=array, from_=side(0x5000, lib.WIRE_SIDE_HOST, pitch=16),
                   flags=lib.WIRE_SYNCHRONOUS, content_kind=lib.WIRE_HASHED_CONTENT, content=name)
    number = program.record(Kind.COPY, width=16, height=4, depth=1, from_=array,
                            to=side(0x6000, lib.WIRE_SIDE_HOST, pitch=16), flags=lib.WIRE_SYNCHRONOUS,
                            content_kind=lib.WIRE_LATER_CONTENT)
    program.outcome(number, data)
    program.ended(Kind.ARRAY, 0xAA)
    report = run(program)
    assert (report.verified, report.mismatched) == (1, 0)


def graph(program: Program, nodes: list[bytes], edges: list[tuple[int, int]]) -> None:
    program.record(Kind.GRAPH_EXEC, exec=0x61, context=CONTEXT, nodes=len(nodes), edges=len(edges), whole=1,
                   tail=b"".join(nodes) + tails.edges_tail(edges))


def launch_node(node: int, a: float, parent: int = 0, enabled: int = 1) -> bytes:
    parameters = saxpy_parameters(Y, X, a, N)
    return tails.encode_node(NodeKind.LAUNCH, node=node, parent=parent, enabled=enabled, function=SAXPY,
                             grid=(1, 1, 1), block=(N, 1, 1), parameter_bytes=len(parameters),
                             tail=tails.launch_tail(parameters))


@pytest.mark.parametrize("fixed", [True, False])
def test_graphs_are_their_nodes_in_order(run: Run, fixed: bool) -> None:
    """A memset of the vector, then two launches in a child, one of which is changed and then left out."""
    program = begun()
    program.to_device(X, np.ones(N, np.float32).tobytes())
    nodes = [
        tails.encode_node(NodeKind.CHILD, node=0x201), launch_node(0x202, 2.0, 0x201), launch_node(0x203, 3.0, 0x201),
        tails.encode_node(NodeKind.SET, node=0x204, address=Y, width=N, height=1, element_bytes=4, value=0x3F800000),
        tails.encode_node(NodeKind.EMPTY, node=0x205),
    ]
    graph(program, nodes, [(0x204, 0x201), (0x202, 0x203), (0x201, 0x205)])
    changes = [[], [launch_node(0x203, 10.0, 0x201)], [launch_node(0x202, 2.0, 0x201, enabled=0)]]
    for change, expected in zip(changes, (6.0, 13.0, 11.0), strict=True):
        for node in change:
            program.record(Kind.GRAPH_NODE, exec=0x61, tail=node)
        program.record(Kind.GRAPH_LAUNCH, exec=0x61)
        program.to_host(Y, np.full(N, expected, np.float32).tobytes())
    program.ended(Kind.GRAPH_EXEC, 0x61)
    report = run(program, fixed=fixed)
    assert (report.verified, report.mismatched, report.graph_launches, report.launches) == (3, 0, 3, 5)


def test_memory_that_graphs_allocate(run: Run) -> None:
    program = begun()
    a = 0x7EA1_0000_0000
    nodes = [
        tails.encode_node(NodeKind.ALLOCATE, node=1, address=a, bytes=256),
        tails.encode_node(NodeKind.SET, node=2, address=a, width=256, height=1, element_bytes=1, value=7),
        tails.encode_node(NodeKind.COPY, node=3, width=256, height=1, depth=1, to=side(Y, lib.WIRE_SIDE_DEVICE),
                          from_=side(a, lib.WIRE_SIDE_DEVICE)),
        tails.encode_node(NodeKind.FREE, node=4, address=a),
    ]
    graph(program, nodes, [(1, 2), (2, 3), (3, 4)])
    for _ in range(2):
        program.record(Kind.GRAPH_LAUNCH, exec=0x61)
        program.to_host(Y, bytes([7]) * 256)
    for fixed in (True, False):
        report = run(program, fixed=fixed)
        assert (report.verified, report.mismatched) == (2, 0)
        assert not report.skipped


def test_mapped_memory_at_the_same_offsets(run: Run) -> None:
    page, reserved = 1 << 21, 0x7EB0_0000_0000
    program = begun()
    program.record(Kind.RESERVATION, address=reserved, bytes=4 * page)
    program.record(Kind.PHYSICAL, handle=0x99, bytes=page, type=1, location_type=1, location=0)
    for place in (1, 3):  # the same bytes twice
        program.memory(reserved + place * page, page, lib.WIRE_MAPPED, owner=0x99)
        program.record(Kind.ACCESS, address=reserved + place * page, bytes=page, location_type=1, flags=3)
    program.to_device(reserved + page + 16, b"twice")
    program.to_host(reserved + 3 * page + 16, b"twice")
    program.ended(Kind.MEMORY, reserved + page, bytes=3 * page)
    program.ended(Kind.RESERVATION, reserved, bytes=4 * page)
    report = run(program)
    assert (report.verified, report.mismatched) == (1, 0)


def test_variables_of_modules_and_pointers_that_nobody_can_tell(run: Run) -> None:
    """The address of a variable stands in a parameter: it is another one in the replay."""
    text = PTX.replace(b".visible .entry saxpy", b".visible .global .align 4 .b8 table[256];\n.visible .entry saxpy")
    program = Program()
    program.begin()
    program.module(text)
    program.function("saxpy", SAXPY_PARAMETERS)
    program.memory(Y, 256)
    variable = 0x7EC0_0000_0000
    program.memory(variable, 256, lib.WIRE_VARIABLE, owner=0xA000, name_bytes=5, tail=b"table")
    program.to_device(variable, np.ones(N, np.float32).tobytes())
    program.launch(saxpy_parameters(Y, variable, 4.0, N))
    program.to_host(Y, np.full(N, 4, np.float32).tobytes())
    report = run(program)
    assert (report.verified, report.mismatched, report.rebased["analysed"]) == (1, 0, 1)


def test_linked_modules_are_linked_again(run: Run) -> None:
    program = Program()
    program.begin()
    source = program.payload(PTX)
    linked = bytes(32)[:-1] + b"\1"  # no such contents are there
    program.record(Kind.LINK_INPUT, state=0x11, type=1, name_bytes=1, bytes=len(PTX), content=source, tail=b"k")
    program.record(Kind.LINK_OUTPUT, state=0x11, bytes=100, content=linked)
    program.ended(Kind.LINK_INPUT, 0x11)
    program.record(Kind.MODULE, handle=0xA000, library=1, image=lib.WIRE_IMAGE_CUBIN, bytes=100, content=linked)
    program.function("saxpy", SAXPY_PARAMETERS)
    for address in (Y, X):
        program.memory(address, 4 * N)
        program.to_device(address, np.ones(N, np.float32).tobytes())
    program.launch(saxpy_parameters(Y, X, 1.0, N))
    program.to_host(Y, np.full(N, 2, np.float32).tobytes())
    for fixed in (True, False):
        report = run(program, fixed=fixed)
        assert (report.verified, report.mismatched, report.rebased["guessed"]) == (1, 0, 0)


def test_what_makes_results_uncertain_is_said_and_counted(run: Run) -> None:
    """Each ends with a wrong result, which then is no mismatch."""
    pinned = 0x7ED0_0000_0000

    def lost(program: Program) -> None:
        program.sequence += 5
        program.record(Kind.EPOCH, epoch=1, lost=5)
        for address in (Y, X):
            program.record(Kind.MEMORY, marks=lib.WIRE_RESTATED, address=address, bytes=4 * N, context=CONTEXT,
                           kind=lib.WIRE_ALLOCATED)

    def host_memory(program: Program) -> None:
        program.memory(pinned, 4 * N, lib.WIRE_HOST)
        program.launch(saxpy_parameters(Y, pinned, 1.0, 0))

    def missing_contents(program: Program) -> None:
        program.record(Kind.COPY, width=8, height=1, depth=1, to=side(Y, lib.WIRE_SIDE_DEVICE),
                       from_=side(0x5000, lib.WIRE_SIDE_HOST), content_kind=lib.WIRE_HASHED_CONTENT, content=bytes(32))

    def other_work(program: Program) -> None:
        program.record(Kind.OTHER_WORK)

    def on_the_host(program: Program) -> None:
        program.record(Kind.HOST_FUNCTION, function=0x1234)

    def no_module(program: Program) -> None:
        program.launch(b"", function=0x77)

    def no_parameters(program: Program) -> None:
        program.record(Kind.LAUNCH, function=SAXPY, grid=(1, 1, 1), block=(1, 1, 1), flags=lib.WIRE_PARAMETERS_UNKNOWN)

    for happens, reason in ((lost, "lost"), (host_memory, "host or managed"), (missing_contents, "not recorded"),
                            (other_work, "do not describe"), (on_the_host, "on the host"), (no_module, "not there"),
                            (no_parameters, "parameters")):
        program = begun()
        happens(program)
        program.to_host(Y, b"wrong")
        report = run(program)
        assert (report.mismatched, report.unverifiable) == (0, 1), happens
        assert any(reason in doubt for doubt in report.doubts), (happens, report.doubts)
    assert run(begun()).doubts == {}


def test_calls_that_failed_are_left_out(run: Run) -> None:
    program, y = usual()
    program.outcome(program.launch(saxpy_parameters(Y, X, 2.0, N)), result=1)
    program.outcome(program.free(Y), result=1)
    program.to_host(Y, y.tobytes())
    report = run(program)
    assert (report.verified, report.mismatched, report.launches) == (4, 0, 3)


def test_waits_for_what_the_program_wrote_itself(run: Run) -> None:
    pinned = 0x7ED0_0000_0000
    program = begun()
    program.memory(pinned, 64, lib.WIRE_HOST)
    for value in range(1, 5):
        program.record(Kind.MEMORY_OPERATIONS, count=1, tail=tails.memory_operations_tail([(1, 1, pinned, value)]))
        program.record(Kind.SET, address=Y, width=4, height=1, element_bytes=1, value=value)
        program.synchronize()
        program.to_host(Y, bytes([value]) * 4)
    report = run(program)
    assert report.verified == 4
    assert [count for reason, count in report.doubts.items() if "in its place" in reason] == [4]


def test_a_kernel_that_never_ends(run: Run) -> None:
    program = Program()
    program.begin()
    program.module(SPIN)
    program.function("spin", [(0, 8)])
    program.memory(Y, 4)
    program.launch(struct.pack("<Q", Y))
    program.synchronize()
    with pytest.raises(ReplayDeadline, match=r"nothing went on for 3 s at client 1, record \d+ \(operation\)") as found:
        run(program, seconds=3.0)
    assert found.value.exit_code == ExitCode.DEADLINE


def test_a_driver_that_is_not_there(run: Run, tmp_path: Path) -> None:
    with pytest.raises(TesseraError, match="no CUDA driver") as found:
        run(usual()[0], driver=str(tmp_path / "none.so"))
    assert found.value.exit_code == ExitCode.NO_DRIVER


def test_pages_of_ranges() -> None:
    ranges = [(0x1800, 0x100, 0), (0x1000, 0x10, 0), (0x2000, 0x2001, 0), (0x9000, 1, 1), (0x7000, 1, 0),
              (0x7800, 1, 1)]
    assert list(pages(ranges, 0x1000)) == [Extent(0x1000, 0x4000, 0), Extent(0x9000, 0x1000, 1)]


def test_the_command(tmp_path: Path, variables: Mapping[str, str], monkeypatch: pytest.MonkeyPatch,
                     capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = usual()[0], usual()[0]
    bad.to_host(Y, b"wrong")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    def command(path: Path, *words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["tessera", "replay", str(path), "--fleet", FLEET, *words])
        with pytest.raises(SystemExit) as ended:
            app.main()
        return int(ended.value.code or 0), capsys.readouterr().out

    path = write(tmp_path / "good.trace", good)
    code, out = command(path, "--verify", "--json")
    document = json.loads(out)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert (code, document["verified"], document["verify"]) == (0, 3, True)
    path = write(tmp_path / "bad.trace", bad)
    code, out = command(path, "--verify", "--json")
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(out))
    assert code == 1
    code, out = command(path, "--verify")
    assert code == 1 and "differs: client 1, record" in out and "after kernel saxpy" in out
    assert command(path)[0] == 0
    assert command(path, "--addresses", "some")[0] == command(path, "--deadline", "0")[0] == 2
    assert command(tmp_path / "none")[0] == 3
    with Trace(path) as trace:
        assert trace.complete
