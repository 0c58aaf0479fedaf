"""Programs made of checks: each is a function that raises when something is wrong; all run, one after the other."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable

CHECKS: dict[str, Callable[[], None]] = {}


def check(function: Callable[[], None]) -> Callable[[], None]:
    CHECKS[function.__name__] = function
    return function


def run() -> None:
    """Print one JSON object: by check, nothing when it succeeded, else what it raised."""
    said = {}
    for name, function in CHECKS.items():
        try:
            function()
            said[name] = ""
        except Exception:
            said[name] = traceback.format_exc()[-2000:]
    print(json.dumps(said))
