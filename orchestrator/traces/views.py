"""The views of a trace file: what people query, with names in place of numbers and nanoseconds in place of ticks."""

from __future__ import annotations

CLOCK = """SELECT id AS client, first_ticks, first_ns,
    coalesce((last_ns - first_ns) * 1.0 / nullif(last_ticks - first_ticks, 0), 0.0) AS ns_per_tick FROM client"""
"""A straight line through a client's first and last pair of clocks: ticks of the processor count evenly."""


def moment(ticks: str) -> str:
    """SQL for nanoseconds of CLOCK_REALTIME, where ``clock`` is joined."""
    return f"clock.first_ns + CAST(({ticks} - clock.first_ticks) * clock.ns_per_tick AS INTEGER)"


def word(topic: str, number: str) -> str:
    """SQL for the name of a number; the number itself where it has none."""
    return f"coalesce((SELECT name FROM word WHERE topic = '{topic}' AND word.number = {number}), {number})"


LIFE = f"t.client, t.born, t.died, {moment('t.born_ticks')} AS born_ns, {moment('t.died_ticks')} AS died_ns"
THINGS = "t JOIN clock ON clock.client = t.client"
DONE = f"""o.id, o.client, o.sequence, {moment('o.ticks')} AS at_ns, o.thread, f.symbol AS function, o.stream,
    o.context,
    (SELECT device FROM context WHERE context.id = o.context) AS device, o.captured, o.step,
    coalesce((SELECT max(result) FROM outcome WHERE outcome.client = o.client AND subject = o.sequence), 0) AS result"""
OPERATIONS = "operation o JOIN clock ON clock.client = o.client LEFT JOIN function f ON f.id = o.function"
SIZES = "grid_x, grid_y, grid_z, block_x, block_y, block_z, shared"
LATER = """(SELECT outcome.content FROM outcome
        WHERE outcome.client = o.client AND outcome.subject = o.sequence AND outcome.content IS NOT NULL)"""
"""The contents of a copy that were seen after it."""


def things(table: str, columns: str) -> str:
    return f'SELECT t.id, {LIFE}, {columns} FROM "{table}" {THINGS}'


def operations(table: str, columns: str, more: str = "") -> str:
    return f'SELECT {DONE}, {columns} FROM {OPERATIONS} JOIN "{table}" d ON d.id = o.id {more}'


VIEWS: dict[str, str] = {
    "clock": CLOCK,
    "clients": """SELECT id AS client, process, program, driver, driver_version, options & 1 AS payloads,
        first_ns, last_ns, batches, lost, ended, trouble FROM client""",
    "devices": "SELECT client, ordinal, name, uuid, capability, memory, processors FROM device",
    "contexts": things("context", "t.device, t.is_primary, t.announced"),
    "modules": things(
        "module",
        f"t.context, t.library, {word('image', 't.image')} AS image, t.bytes, lower(hex(t.content)) AS content, "
        "t.path, t.announced",
    ),
    "kernels": things("kernel", "t.module, t.name, t.parameter_bytes, t.parameters, t.announced"),
    "streams": things("stream", "t.context, t.flags, t.priority, t.handle, t.thread, t.announced"),
    "events": things("event", "t.context, t.flags, t.imported, t.announced"),
    "allocations": things(
        "memory",
        f"{word('memory', 't.kind')} AS kind, t.address, t.bytes, t.context, t.device, t.stream, t.owner, t.pitch, "
        "t.width, t.height, t.name",
    ),
    "reservations": things("reservation", "t.address, t.bytes"),
    "arrays": things("array", "t.context, t.width, t.height, t.depth, t.format, t.channels, t.element_bytes"),
    "graphs": things(
        "graph",
        "t.context, t.whole, (SELECT count(*) FROM node WHERE node.graph = t.id AND node.born = t.born) AS nodes",
    ),
    "nodes": f"""SELECT n.id, n.client, n.graph, n.born, n.position, {word('node', 'n.kind')} AS kind, n.enabled,
        n.context, k.name AS kernel, {SIZES}, c.width * c.height * c.depth AS copied_bytes
        FROM node n LEFT JOIN launch l ON l.id = n.id LEFT JOIN kernel k ON k.id = l.kernel
        LEFT JOIN copy c ON c.id = n.id""",
    "operations": f"SELECT {DONE}, {word('kind', 'o.kind')} AS kind FROM {OPERATIONS}",
    "launches": operations(
        "launch",
        f"k.name AS kernel, {SIZES}, d.flags, hex(d.parameters) AS parameters, length(d.attributes) / 72 AS attributes",
        "LEFT JOIN kernel k ON k.id = d.kernel",
    ),
    "copies": operations(
        "copy",
        f"{word('side', 'd.from_kind')} || ' to ' || {word('side', 'd.to_kind')} AS direction, "
        "d.width * d.height * d.depth AS bytes, d.width, d.height, d.depth, d.from_thing, d.from_address, d.to_thing, "
        "d.to_address, d.flags & 1 AS synchronous, d.flags >> 1 & 1 AS pinned, "
        f"lower(hex(coalesce({LATER}, d.content))) AS content",
    ),
    "memsets": operations(
        "memset",
        "d.thing, d.address, d.width * d.height * d.element_bytes AS bytes, d.width, d.height, d.element_bytes, "
        "d.value",
    ),
    "graph_launches": operations("graph_launch", "d.graph"),
    "event_uses": operations("event_use", f"{word('kind', 'o.kind')} AS use, d.event"),
    "host_functions": operations("host_function", "d.address, d.callback"),
    "memory_operations": operations("memory_operation", "d.position, d.type, d.address, d.value"),
    "synchronizations": operations(
        "synchronization",
        f"{word('waited', 'd.what')} AS what, d.event, d.query, (SELECT {moment('w.ticks')} FROM outcome w "
        "WHERE w.client = o.client AND w.subject = o.sequence) AS over_ns",
    ),
    "failures": """SELECT u.client, u.subject AS sequence, u.result, f.symbol AS function FROM outcome u
        LEFT JOIN operation o ON o.client = u.client AND o.sequence = u.subject
        LEFT JOIN function f ON f.id = o.function WHERE u.result != 0""",
    "calls": """SELECT o.client, f.symbol AS function, count(*) AS calls FROM operation o
        LEFT JOIN function f ON f.id = o.function GROUP BY o.client, o.function""",
    "steps": f"""SELECT s.id AS step, s.client, s.first, s.last, s.launches, s.signature,
        (SELECT {moment('o.ticks')} FROM operation o JOIN clock ON clock.client = o.client
            WHERE o.client = s.client AND o.sequence = s.first) AS first_ns,
        (SELECT {moment('o.ticks')} FROM operation o JOIN clock ON clock.client = o.client
            WHERE o.client = s.client AND o.sequence = s.last) AS last_ns FROM step s""",
    "step_classes": """SELECT client, signature, count(*) AS times, launches, min(id) AS example FROM step
        GROUP BY client, signature ORDER BY min(id)""",
    "doors": f"""SELECT d.client, d.sequence, CASE d.name WHEN '' THEN f.symbol ELSE d.name END AS function,
        {word('how', 'd.how')} AS how, d.name != '' AS unseen FROM door d LEFT JOIN function f ON f.id = d.function""",
    "gaps": "SELECT client, sequence, epoch, lost FROM gap",
    "payloads": """SELECT lower(hex(content)) AS content, max(total) AS bytes, count(*) AS pieces,
        sum(length(data)) AS stored_bytes FROM payload GROUP BY content""",
}  # fmt: skip


def statements() -> list[str]:
    """What makes the views."""
    return [f"CREATE VIEW {name} AS {query}" for name, query in VIEWS.items()]
