"""Contexts come and go, with all that is in them."""

from __future__ import annotations

from shim.wire import Kind
from softgpu.instrument import Fail
from tests.nodriver.shim.living import living
from tests.nodriver.shim.observed import symbol
from tests.nodriver.shim.things import Seen, see

TEXT = r"""
text = b".version 7.0\n.target sm_70\n.address_size 64\n.global .u32 g;\n.visible .entry k(.param .u64 a) { ret; }\n"
def launch(function):
    argument = c_uint64()
    arguments = (c_void_p * 1)(ctypes.addressof(argument))
    ok("cuLaunchKernel", c_void_p(function), 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
def fill():
    module = made("cuModuleLoadData", text)
    launch(made("cuModuleGetFunction", c_void_p(module), b"k"))
    made("cuModuleGetGlobal_v2", byref(c_size_t()), c_void_p(module), b"g")
    made("cuStreamCreate", 1)
    made("cuEventCreate", 2)
    made("cuMemAlloc_v2", size(100))
    made("cuMemHostAlloc", size(100), 0)
    array = (c_uint64 * 3)(4, 4, 1 << 32 | 32)
    made("cuArrayCreate_v2", array)
"""
IN_CONTEXT = {Kind.MODULE: 1, Kind.FUNCTION: 1, Kind.MEMORY: 3, Kind.STREAM: 1, Kind.EVENT: 1, Kind.ARRAY: 1}
ALL = (Kind.CONTEXT, *IN_CONTEXT)


def contexts(seen: Seen) -> dict[int, tuple[int, int]]:
    return {handle: (body.device, body.primary) for handle, body in seen.alive(Kind.CONTEXT).items()}


def test_what_is_in_a_context_ends_with_it() -> None:
    seen = see(TEXT + """
other = made("cuCtxCreate_v2", 0, 1)
fill()
stays = made("cuMemAllocAsync", size(100), None)
ok("cuCtxSetCurrent", c_void_p(context))
fill()
ok("cuCtxDestroy_v2", c_void_p(other))
wrong = [cuda.cuCtxDestroy_v2(c_void_p(other)), cuda.cuCtxDestroy_v2(None)]
show([context, other, stays, wrong])
""")
    context, other, stays, wrong = seen.shown
    assert all(wrong)
    assert contexts(seen) == {context: (0, 0)}
    for kind, count in IN_CONTEXT.items():
        alive = seen.alive(kind)
        assert len(alive) == count + (kind is Kind.MEMORY), kind
        if kind is Kind.FUNCTION:
            assert {body.module for body in alive.values()} == set(seen.alive(Kind.MODULE))
        else:
            assert {body.context for at, body in alive.items() if at != stays} == {context}, kind
    assert {symbol(record) for record in seen.observed.records if record.kind is Kind.END} == {"cuCtxDestroy_v2"}
    assert [body.handle for body in seen.said(Kind.END)] == [other, other]


def test_all_of_a_context_that_was_not_destroyed_is_there_once_more() -> None:
    seen = see(TEXT + """
fill()
show(cuda.cuCtxDestroy_v2(c_void_p(context)))
""", rules=[Fail("cuCtxDestroy")])
    assert seen.shown == 999
    records = seen.observed.records
    end = next(k for k, record in enumerate(records) if record.kind is Kind.END)
    before = [(key, r.body, bytes(r.tail)) for key, r in living(records[:end]).items() if key[0] is not Kind.DEVICE]
    assert records[end + 1].kind is Kind.OUTCOME
    again = [(key, r.body, bytes(r.tail)) for key, r in living(records[end:]).items()]
    assert again == before
    assert len(before) == 1 + sum(IN_CONTEXT.values())


def test_a_primary_context_ends_with_its_last_user() -> None:
    seen = see("""
alive = []
def retain():
    return made("cuDevicePrimaryCtxRetain", 1)
first = retain()
assert retain() == first
ok("cuCtxSetCurrent", c_void_p(first))
at = made("cuMemAlloc_v2", size(100))
ok("cuDevicePrimaryCtxRelease_v2", 1)
middle = made("cuEventCreate", 0)
ok("cuDevicePrimaryCtxRelease_v2", 1)
wrong = cuda.cuDevicePrimaryCtxRelease_v2(1)
second = retain()
ok("cuDevicePrimaryCtxReset_v2", 1)
third = retain()
ok("cuDevicePrimaryCtxRelease_v2", 1)
show([first, second, third, wrong])
""", context=False)
    first, second, third, wrong = seen.shown
    assert wrong == 201
    assert contexts(seen) == {third: (1, 1)}
    assert not seen.alive(Kind.MEMORY, Kind.EVENT)
    order = [(record.kind, record.body.handle) for record in seen.observed.records
             if record.kind is Kind.CONTEXT or (record.kind is Kind.END and record.body.kind == Kind.CONTEXT)]
    assert order == [(Kind.CONTEXT, first), (Kind.END, first), (Kind.CONTEXT, second), (Kind.END, second),
                     (Kind.CONTEXT, third)]
    assert {body.context for body in seen.said(Kind.EVENT)} == {first}


def test_contexts_that_are_attached() -> None:
    seen = see("""
assert made("cuCtxAttach", 0) == context
ok("cuCtxDetach", c_void_p(context))
still = made("cuEventCreate", 0)
ok("cuCtxDetach", c_void_p(context))
show([context, still])
""")
    context, still = seen.shown
    assert not contexts(seen)
    assert [(r.kind, r.body[0]) for r in seen.observed.records if r.kind in (Kind.CONTEXT, Kind.EVENT, Kind.END)] == [
        (Kind.CONTEXT, context), (Kind.EVENT, still), (Kind.END, context)]


def test_all_ways_to_make_one() -> None:
    seen = see("""
made_by = [made("cuCtxCreate", 0, 0), made("cuCtxCreate_v2", 0, 0), made("cuCtxCreate_v3", None, 0, 0, 1),
           made("cuCtxCreate_v4", None, 0, 1), made("cuDevicePrimaryCtxRetain", 0)]
wrong = [cuda.cuCtxCreate_v2(None, 0, 0), cuda.cuCtxCreate_v2(byref(c_uint64()), 0, 77)]
for context in made_by:
    ok("cuCtxSetCurrent", c_void_p(context))
    made("cuMemAlloc_v2", size(10))
now = made("cuCtxGetCurrent")
show([made_by, wrong, now])
""", context=False)
    made_by, wrong, now = seen.shown
    assert wrong == [1, 101]
    assert now == made_by[-1]
    assert contexts(seen) == {handle: (n // 2 % 2, n == 4) for n, handle in enumerate(made_by)}
    assert {body.context: body.device for body in seen.alive(Kind.MEMORY).values()} == {
        handle: n // 2 % 2 for n, handle in enumerate(made_by)}
    assert {body.ordinal for body in seen.said(Kind.DEVICE)} == {0, 1}


def test_streams_and_events() -> None:
    seen = see("""
streams = [made("cuStreamCreate", 1), made("cuStreamCreateWithPriority", 0, -2), made("cuStreamCreate", 0)]
events = [made("cuEventCreate", 2), made("cuEventCreate", 6), made("cuEventCreate", 0)]
ok("cuStreamDestroy_v2", c_void_p(streams[2]))
ok("cuEventDestroy_v2", c_void_p(events[2]))
shared = create_string_buffer(64)
ok("cuIpcGetEventHandle", shared, c_void_p(events[1]))
wrong = [cuda.cuStreamDestroy_v2(c_void_p(handle)) for handle in (0, 1, 2, streams[2])]
gone = c_void_p(streams[2])
wrong += [cuda.cuStreamSynchronize(gone), cuda.cuMemsetD8Async(pointer(1), 0, size(1), gone),
          cuda.cuMemAllocAsync(byref(c_uint64()), size(1), gone)]
wrong += [cuda.cuEventDestroy_v2(c_void_p(handle)) for handle in (0, events[2])]
show([streams, events, wrong, context])
""")
    streams, events, wrong, context = seen.shown
    assert all(wrong)
    assert {handle: (body.context, body.flags, body.priority) for handle, body in seen.alive(Kind.STREAM).items()} == {
        streams[0]: (context, 1, 0), streams[1]: (context, 0, -2)}
    assert {handle: (body.context, body.flags, body.imported) for handle, body in seen.alive(Kind.EVENT).items()} == {
        events[0]: (context, 2, 0), events[1]: (context, 6, 0)}
    assert [(body.address, body.kind) for body in seen.alive(Kind.EXPORT).values()] == [(events[1], Kind.EVENT)]
    assert {body.handle for body in seen.said(Kind.END)} == {streams[2], events[2]}


def test_what_has_the_handle_of_another_one() -> None:
    """The driver gives handles and addresses again at once."""
    seen = see("""
for _ in range(20):
    stream, event, at = made("cuStreamCreate", 1), made("cuEventCreate", 2), made("cuMemAlloc_v2", size(1000))
    ok("cuMemsetD8Async", pointer(at), 1, size(10), c_void_p(stream))
    ok("cuStreamDestroy_v2", c_void_p(stream))
    ok("cuEventDestroy_v2", c_void_p(event))
    ok("cuMemFree_v2", pointer(at))
    other = made("cuCtxCreate_v2", 0, 1)
    ok("cuCtxDestroy_v2", c_void_p(other))
stream = made("cuStreamCreate", 0)
show([stream, context])
""", reuse=True)
    stream, context = seen.shown
    assert {handle: body.flags for handle, body in seen.alive(Kind.STREAM).items()} == {stream: 0}
    assert not seen.alive(Kind.EVENT, Kind.MEMORY)
    assert contexts(seen) == {context: (0, 0)}
    assert len(seen.said(Kind.STREAM)) == 21
    assert len({body.handle for body in seen.said(Kind.STREAM)}) < 21
