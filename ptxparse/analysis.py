"""One kernel analysed: the passes in their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ptxparse.accesses import AccessBuilder
from ptxparse.conditions import constraints, limits_of
from ptxparse.escapes import Escapes
from ptxparse.flow import Flow
from ptxparse.inline import OF_MODULE, Body, inline
from ptxparse.loops import Loops
from ptxparse.model import Function, Module, ParameterSlot, parameter_layout
from ptxparse.program import Access, AccessProgram, Limit, LoopBound, Parameter, Work
from ptxparse.properties import Properties
from ptxparse.rewrite import Rewriter, arguments
from ptxparse.usage import Usage
from ptxparse.values import Check, Graph, Sum
from ptxparse.walk import Walk
from ptxparse.work import WorkBuilder
from tessera.reasons import Reason

MOST_NESTED_LOOPS = 50


def analyze_kernel(module: Module, kernel: Function) -> AccessProgram:
    """The access program of one kernel. Never raises: what cannot be understood makes the kernel opaque."""
    body = inline(module, kernel)
    flow = Flow(body.instructions, body.labels, body.targets)
    slots, size = parameter_layout(kernel)
    usage = Usage(body.instructions)
    properties = Properties(body, flow, usage)
    problems = list(properties.problems)
    problems += [(Reason.UNKNOWN_BRANCH, flow.instructions[i].line) for i in flow.undefined_targets]
    if module.address_size != 64:
        problems.append((Reason.ADDRESS_SIZE_32, kernel.line))
    if flow.deepest_nest > MOST_NESTED_LOOPS:
        return _opaque(kernel, slots, size, [*problems, (Reason.ANALYSIS_LIMIT, kernel.line)], properties)
    walk = Walk(body, flow, usage, slots)
    loops = Loops(walk)
    builder = AccessBuilder(walk, loops)
    escapes = Escapes(walk, loops)
    pins = [*properties.pins, *((Reason.POINTER_ESCAPES, line) for line in escapes.symbols)]
    problems += [(problem.reason, problem.line) for problem in builder.problems]
    accesses = builder.accesses
    bounds = _loop_bounds(walk, loops, builder)
    work = WorkBuilder(walk, builder, usage).work
    nodes, mapping = _export(walk.graph, accesses, bounds, work)
    names = {base.name for access in accesses for base in access.bases if base.name}
    return AccessProgram(
        kernel=kernel.name,
        line=kernel.line,
        parameters=_parameters(slots),
        parameter_bytes=size,
        nodes=nodes,
        low=tuple(walk.graph.low[old] for old in mapping),
        high=tuple(walk.graph.high[old] for old in mapping),
        uniform=tuple(walk.graph.uniform[old] for old in mapping),
        loops=tuple(_renumber_loop(loop, mapping) for loop in bounds),
        accesses=tuple(_renumber_access(access, mapping) for access in accesses),
        global_sizes=_sizes(body, names),
        escapes=tuple(sorted(escapes.words.items())),
        opaque=problems[0][0] if problems else None,
        opaque_line=problems[0][1] if problems else 0,
        problems=tuple(dict.fromkeys(problems)),
        pinned=tuple(dict.fromkeys(pins)),
        deterministic=properties.deterministic and not escapes.symbols,
        device_invariant=properties.device_invariant and not escapes.symbols and not escapes.offsets,
        unresolved=len(builder.problems),
        work=tuple(
            part._replace(guards=tuple(_renumber_limit(limit, mapping) for limit in part.guards)) for part in work
        ),
    )


def _sizes(body: Body, names: set[str]) -> dict[str, int]:
    """Declared sizes in bytes of module variables."""
    found = {name: body.variables.get(name + OF_MODULE) or body.variables.get(name) for name in sorted(names)}
    return {name: variable.size for name, variable in found.items() if variable is not None}


def _opaque(
    kernel: Function, slots: list[ParameterSlot], size: int, problems: list[tuple[Reason, int]], properties: Properties
) -> AccessProgram:
    """A program that says nothing but why."""
    reason, line = problems[0]
    return AccessProgram(
        kernel.name, kernel.line, _parameters(slots), size, (), (), (), (), (), (), {}, (), reason, line,
        tuple(dict.fromkeys(problems)), tuple(dict.fromkeys(properties.pins)),
    )


def _parameters(slots: list[ParameterSlot]) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(s.name, s.variable.type, s.offset, s.size, s.variable.align, s.variable.pointee) for s in slots
    )


def _loop_bounds(walk: Walk, loops: Loops, builder: AccessBuilder) -> list[LoopBound]:
    final = Rewriter(walk.graph, loops.definitions)
    found = []
    for number, facts in enumerate(loops.facts):
        guards = constraints(walk.graph, builder.flattener, builder.block_conditions(walk.flow.loops[number].header))
        limits = []
        for limit in facts.limits:
            value, more = builder.flattener.flatten(final(limit.value))
            checks = set(more)
            for check in limit.checks:
                inner, needed = builder.flattener.flatten(final(check.value))
                checks |= {Check(inner, check.low, check.high), *needed}
            limits.append(Limit(value, limit.relation, tuple(sorted(checks))))
        found.append(LoopBound(facts.counter, tuple(limits), limits_of(guards), facts.exact))
    return found


def _sums(accesses: Iterable[Access], loops: Iterable[LoopBound], work: Iterable[Work]) -> Iterable[Sum]:
    limits: list[Limit] = []
    for access in accesses:
        yield access.offset
        yield from (value for value, _ in access.uniform)
        yield from (check.value for check in access.checks)
        limits += access.guards
    for part in work:
        limits += part.guards
    for loop in loops:
        yield (((loop.counter,), 1),)
        limits += (*loop.limits, *loop.guards)
    for limit in limits:
        yield limit.value
        yield from (check.value for check in limit.checks)


def _export(
    graph: Graph, accesses: tuple[Access, ...], loops: list[LoopBound], work: tuple[Work, ...]
) -> tuple[tuple[tuple[Any, ...], ...], dict[int, int]]:
    """The atoms in use, renumbered; the mapping from old to new numbers, in order."""
    needed: set[int] = set()
    pending = [atom for value in _sums(accesses, loops, work) for product, _ in value for atom in product]
    while pending:
        atom = pending.pop()
        if atom not in needed:
            needed.add(atom)
            pending += [a for value in arguments(graph.nodes[atom]) for product, _ in value for a in product]
    mapping = {old: new for new, old in enumerate(sorted(needed))}
    return tuple(_renumber_node(graph.nodes[old], mapping) for old in mapping), mapping


def _renumber(value: Sum, mapping: dict[int, int]) -> Sum:
    return tuple(sorted((tuple([mapping[atom] for atom in product]), c) for product, c in value))


def _renumber_node(node: tuple[Any, ...], mapping: dict[int, int]) -> tuple[Any, ...]:
    kind = node[0]
    sums = list(arguments(node))
    if not sums:
        return node
    if kind == "alternatives":
        return (kind, tuple(
            (_renumber(value, mapping), tuple((_renumber(c, mapping), truth) for c, truth in guards))
            for value, guards in node[1]
        ))
    if kind == "provided":
        raise AssertionError("a provided value was not flattened")
    if kind == "load":
        return (kind, node[1], _renumber(node[2], mapping), *node[3:])
    if kind in ("wrap", "shift_right", "low_bits"):
        return (kind, _renumber(node[1], mapping), *node[2:])
    return (kind, *(_renumber(value, mapping) for value in sums))


def _renumber_check(check: Check, mapping: dict[int, int]) -> Check:
    return Check(_renumber(check.value, mapping), check.low, check.high)


def _renumber_limit(limit: Limit, mapping: dict[int, int]) -> Limit:
    checks = tuple(_renumber_check(check, mapping) for check in limit.checks)
    return Limit(_renumber(limit.value, mapping), limit.relation, checks)


def _renumber_loop(loop: LoopBound, mapping: dict[int, int]) -> LoopBound:
    return LoopBound(
        mapping[loop.counter],
        tuple(_renumber_limit(limit, mapping) for limit in loop.limits),
        tuple(_renumber_limit(limit, mapping) for limit in loop.guards),
        loop.exact,
    )


def _renumber_access(access: Access, mapping: dict[int, int]) -> Access:
    return access._replace(
        offset=_renumber(access.offset, mapping),
        guards=tuple(_renumber_limit(limit, mapping) for limit in access.guards),
        uniform=tuple((_renumber(value, mapping), truth) for value, truth in access.uniform),
        checks=tuple(_renumber_check(check, mapping) for check in access.checks),
    )
