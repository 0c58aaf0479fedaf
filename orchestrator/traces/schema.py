"""The tables of a trace file; ``docs/trace.md`` says the same to people, ``views.py`` has what they query.

Things (modules, streams, memory ...) and operations have numbers from one sequence, ``id``, so that a reference is one
number whatever it refers to. A handle or an address that is used again is a new thing. ``born`` and ``died`` are
sequence numbers of records of the thing's client; ``died`` is empty while it lives, ``announced`` 0 for a thing that
records use without having said what it is. Addresses and handles are 64 bits and stored as SQLite's signed numbers.
"""

from __future__ import annotations

APPLICATION = 0x54535452
"""``PRAGMA application_id``: the letters TSTR."""
VERSION = 1
"""``PRAGMA user_version``: a reader knows this version only."""

THING = """id INTEGER PRIMARY KEY, client INTEGER NOT NULL, announced INTEGER NOT NULL DEFAULT 1,
        born INTEGER NOT NULL, born_ticks INTEGER NOT NULL, died INTEGER, died_ticks INTEGER"""
"""The columns that all things have."""

def _side(name: str) -> str:
    """The columns of one end of a copy."""
    return ", ".join([f"{name}_kind INTEGER NOT NULL, {name}_address INTEGER NOT NULL, {name}_thing INTEGER",
                      f"{name}_context INTEGER",
                      *[f"{name}_{what} INTEGER NOT NULL" for what in ("x", "y", "z", "pitch", "height", "level")]])


TABLES: dict[str, str] = {
    # the file and its programs
    "meta": """key TEXT PRIMARY KEY, value TEXT NOT NULL""",
    "client": """id INTEGER PRIMARY KEY, process INTEGER NOT NULL, program TEXT NOT NULL,
        options INTEGER NOT NULL, driver TEXT,
        driver_version INTEGER, first_ticks INTEGER, first_ns INTEGER, last_ticks INTEGER, last_ns INTEGER,
        batches INTEGER NOT NULL DEFAULT 0, lost INTEGER NOT NULL DEFAULT 0, ended INTEGER NOT NULL DEFAULT 0,
        trouble TEXT""",
    "payload": """content BLOB NOT NULL, start INTEGER NOT NULL, total INTEGER NOT NULL, coding INTEGER NOT NULL,
        data BLOB NOT NULL, PRIMARY KEY (content, start)""",
    "gap": """client INTEGER NOT NULL, sequence INTEGER NOT NULL, epoch INTEGER, lost INTEGER NOT NULL,
        PRIMARY KEY (client, sequence)""",
    "door": """client INTEGER NOT NULL, sequence INTEGER NOT NULL, function INTEGER NOT NULL, how INTEGER NOT NULL,
        name TEXT NOT NULL, PRIMARY KEY (client, sequence)""",
    # things
    "device": """id INTEGER PRIMARY KEY, client INTEGER NOT NULL, born INTEGER NOT NULL, ordinal INTEGER NOT NULL,
        name TEXT NOT NULL, uuid TEXT NOT NULL, capability INTEGER NOT NULL, memory INTEGER NOT NULL,
        processors INTEGER NOT NULL""",
    "context": f"""{THING},
        handle INTEGER NOT NULL, device INTEGER, is_primary INTEGER""",
    "module": f"""{THING},
        handle INTEGER NOT NULL, context INTEGER, library INTEGER, image INTEGER, bytes INTEGER, content BLOB,
        path TEXT, library_of INTEGER""",
    "kernel": f"""{THING},
        handle INTEGER NOT NULL, module INTEGER, is_kernel INTEGER, name TEXT, known INTEGER, parameter_bytes INTEGER,
        parameters TEXT""",
    "stream": f"""{THING},
        handle INTEGER NOT NULL, context INTEGER, flags INTEGER, priority INTEGER, thread INTEGER""",
    "event": f"""{THING},
        handle INTEGER NOT NULL, context INTEGER, flags INTEGER, imported INTEGER""",
    "memory": f"""{THING},
        address INTEGER NOT NULL, bytes INTEGER NOT NULL, context INTEGER, stream INTEGER, owner INTEGER,
        start INTEGER,
        device_address INTEGER, kind INTEGER NOT NULL, flags INTEGER, pitch INTEGER, width INTEGER, height INTEGER,
        device INTEGER, name TEXT""",
    "reservation": f"""{THING},
        address INTEGER NOT NULL, bytes INTEGER NOT NULL""",
    "physical": f"""{THING},
        handle INTEGER NOT NULL, bytes INTEGER, type INTEGER, location_type INTEGER, location INTEGER,
        shareable INTEGER, imported INTEGER""",
    "array": f"""{THING},
        handle INTEGER NOT NULL, context INTEGER, width INTEGER, height INTEGER, depth INTEGER, format INTEGER,
        channels INTEGER, flags INTEGER, element_bytes INTEGER,
        mipmap INTEGER, levels INTEGER, level INTEGER""",
    "link": f"""{THING},
        handle INTEGER NOT NULL, bytes INTEGER, content BLOB""",
    "link_input": """link INTEGER NOT NULL, position INTEGER NOT NULL, sequence INTEGER NOT NULL,
        type INTEGER NOT NULL,
        name TEXT NOT NULL, bytes INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY (link, position)""",
    "graph": f"""{THING},
        handle INTEGER NOT NULL, graph_handle INTEGER, context INTEGER, whole INTEGER, flags INTEGER""",
    "node": """id INTEGER PRIMARY KEY, client INTEGER NOT NULL, born INTEGER NOT NULL, graph INTEGER NOT NULL,
        position INTEGER NOT NULL, handle INTEGER NOT NULL, parent INTEGER NOT NULL, kind INTEGER NOT NULL,
        enabled INTEGER NOT NULL, context INTEGER""",
    "edge": """graph INTEGER NOT NULL, origin INTEGER NOT NULL, target INTEGER NOT NULL""",
    "node_memory": """id INTEGER PRIMARY KEY, address INTEGER NOT NULL, bytes INTEGER NOT NULL,
        device INTEGER NOT NULL""",
    "access": """client INTEGER NOT NULL, sequence INTEGER NOT NULL, address INTEGER NOT NULL, bytes INTEGER NOT NULL,
        location_type INTEGER NOT NULL, location INTEGER NOT NULL, flags INTEGER NOT NULL,
        PRIMARY KEY (client, sequence)""",
    "export": """client INTEGER NOT NULL, sequence INTEGER NOT NULL, kind INTEGER NOT NULL, thing INTEGER,
        handle INTEGER NOT NULL, PRIMARY KEY (client, sequence)""",
    "ending": """client INTEGER NOT NULL, sequence INTEGER NOT NULL, kind INTEGER NOT NULL, thing INTEGER,
        handle INTEGER NOT NULL, stream INTEGER, bytes INTEGER NOT NULL, PRIMARY KEY (client, sequence)""",
    # what is done, and by nodes of graphs: `id` is that of the operation or of the node
    "operation": """id INTEGER PRIMARY KEY, client INTEGER NOT NULL, sequence INTEGER NOT NULL,
        ticks INTEGER NOT NULL,
        thread INTEGER NOT NULL, function INTEGER NOT NULL, kind INTEGER NOT NULL, stream INTEGER, context INTEGER,
        captured INTEGER NOT NULL, step INTEGER""",
    "launch": """id INTEGER PRIMARY KEY, kernel INTEGER NOT NULL, grid_x INTEGER NOT NULL, grid_y INTEGER NOT NULL,
        grid_z INTEGER NOT NULL, block_x INTEGER NOT NULL, block_y INTEGER NOT NULL, block_z INTEGER NOT NULL,
        shared INTEGER NOT NULL, flags INTEGER NOT NULL, parameters BLOB NOT NULL, attributes BLOB NOT NULL""",
    "copy": f"""id INTEGER PRIMARY KEY, width INTEGER NOT NULL, height INTEGER NOT NULL, depth INTEGER NOT NULL,
        {_side("to")},
        {_side("from")},
        flags INTEGER NOT NULL, content_kind INTEGER NOT NULL, content BLOB""",
    "memset": """id INTEGER PRIMARY KEY, address INTEGER NOT NULL, thing INTEGER, context INTEGER,
        width INTEGER NOT NULL,
        height INTEGER NOT NULL, pitch INTEGER NOT NULL, element_bytes INTEGER NOT NULL, value INTEGER NOT NULL""",
    "graph_launch": """id INTEGER PRIMARY KEY, graph INTEGER NOT NULL""",
    "event_use": """id INTEGER PRIMARY KEY, event INTEGER NOT NULL, flags INTEGER NOT NULL""",
    "host_function": """id INTEGER PRIMARY KEY, address INTEGER NOT NULL, data INTEGER NOT NULL,
        callback INTEGER NOT NULL""",
    "memory_operation": """id INTEGER NOT NULL, position INTEGER NOT NULL, type INTEGER NOT NULL,
        flags INTEGER NOT NULL,
        address INTEGER NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (id, position)""",
    "synchronization": """id INTEGER PRIMARY KEY, what INTEGER NOT NULL, event INTEGER, query INTEGER NOT NULL""",
    "capture": """id INTEGER PRIMARY KEY, graph_handle INTEGER NOT NULL, mode INTEGER NOT NULL""",
    "outcome": """client INTEGER NOT NULL, sequence INTEGER NOT NULL, ticks INTEGER NOT NULL,
        subject INTEGER NOT NULL,
        result INTEGER NOT NULL, bytes INTEGER, content BLOB, PRIMARY KEY (client, sequence)""",
    "step": """id INTEGER PRIMARY KEY, client INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
        launches INTEGER NOT NULL, signature TEXT NOT NULL""",
    # names of numbers
    "function": """id INTEGER PRIMARY KEY, symbol TEXT NOT NULL""",
    "word": """topic TEXT NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (topic, number)""",
}

WITHOUT_ROWID = frozenset({
    "gap", "door", "link_input", "access", "export", "ending", "memory_operation", "outcome", "word"})
INDEXES = {
    "operation_sequence": "operation (client, sequence)",
    "outcome_subject": "outcome (client, subject)",
    "launch_kernel": "launch (kernel)",
    "node_graph": "node (graph)",
}
"""Few, as each is paid for while recording."""


def statements() -> list[str]:
    """What makes the tables and indexes."""
    made = [
        f'CREATE TABLE "{name}" ({columns}){" WITHOUT ROWID" if name in WITHOUT_ROWID else ""}'
        for name, columns in TABLES.items()
    ]
    return made + [f"CREATE INDEX {name} ON {over}" for name, over in INDEXES.items()]
