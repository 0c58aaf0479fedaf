"""How the programs of a round trip use the area: flags, the place of the tables, and of the ranges. Needs no driver."""

from __future__ import annotations

from tests.device.area import FLAGS, PAGE

READY, FORKED, JOINED, ASKED, TOLD = range(5)
"""Flags: the tables of segment n are there; gathered; the results are there; the program has queued n; addresses are
told."""
ADDRESSES = 1024
"""Where the program says its addresses: x, weights, out; 64 bits each."""
GATHER_TABLE, APPLY_TABLE = FLAGS, FLAGS + PAGE // 2
DATA = FLAGS + PAGE
WORDS = 10007
"""Words of x, weights and out."""
SIZE = WORDS * 4
AREA = DATA + (4 * SIZE // PAGE + 1) * PAGE
EPOCH = 5
DECIDED, ROUNDS = 100, 300
"""Each of the first rounds is made ready when the program has asked for it; the others are ready from then on."""
