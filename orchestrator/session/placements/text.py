"""A placement from what people write."""

from __future__ import annotations

import re
from pathlib import Path

from orchestrator.session.placement import Home, Placement
from orchestrator.session.placements.chance import Random
from orchestrator.session.placements.file import read_mixtures
from orchestrator.session.placements.followed import FilePlacement
from orchestrator.session.placements.rules import Rule, Rules
from tessera.errors import UsageError

FORMS = "home; random:SEED; KERNEL=GPU[+GPU...],... as in 'r_*=1,kv_write@8,1,1=0+1'; @FILE or FILE.json"
_RULE = re.compile(r"\s*([^@=,\s][^@=,]*)(?:@([0-9]{1,10}(?:,[0-9]{1,10}){0,2}))?=([0-9]{1,4}(?:\+[0-9]{1,4})*)(?:,|$)")


def parse_placement(text: str, gpus: int) -> Placement:
    """A placement for one client on a fleet of so many GPUs. Raises :class:`UsageError` for a text that says none, and
    :class:`orchestrator.session.placements.file.PlacementError` for a file that cannot be read or is none."""
    text = text.strip()
    if text == "home":
        return Home()
    if text.startswith("random:"):
        if not re.fullmatch(r"-?[0-9]{1,18}", text[7:]):
            raise UsageError(f"placement {text!r}: behind random: stands a whole number, as in random:7")
        return Random(int(text[7:]), gpus)
    if text.startswith("@") or (text.endswith(".json") and "=" not in text):
        return FilePlacement(read_mixtures(Path(text.removeprefix("@")), gpus))
    return Rules(_rules(text, gpus))


def _rules(text: str, gpus: int) -> list[Rule]:
    found = []
    place = 0
    while place < len(text):
        match = _RULE.match(text, place)
        if match is None:
            raise UsageError(f"placement {text!r}: {text[place:]!r} is none; there are {FORMS}")
        place = match.end()
        pattern, grid, numbers = match[1].strip(), match[2], match[3]
        named = tuple([int(number) for number in numbers.split("+")])
        if max(named) >= gpus or len(set(named)) < len(named):
            raise UsageError(f"placement {text!r}: {pattern}={numbers}: the fleet has GPUs 0 to {gpus - 1}, "
                             "each of which may stand there once")
        sizes = [int(size) for size in grid.split(",")] if grid else []
        x, y, z = (*sizes, 1, 1, 1)[:3]
        found.append(Rule(pattern, (x, y, z) if sizes else None, named))
    if not found or text.endswith(","):
        raise UsageError(f"placement {text!r} says nothing; there are {FORMS}")
    return found
