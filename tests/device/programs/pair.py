"""Two programs that use a device at the same time, started by one that does not.

    python -m tests.device.programs.pair DEVICE ROUNDS
"""

from __future__ import annotations

import json
import os
import sys

from tests.device.area import PAGE, SECONDS, shared_file
from tests.device.machine import Machine, finish


def main() -> None:
    number, rounds = sys.argv[1:]
    machine = Machine(True, os.environ, int(number), int(number), "")
    with shared_file(PAGE) as file:
        sides = [machine.start("beside", number, side, file, rounds, files=[file]) for side in (0, 1)]
        processes = [side.process.pid for side in sides]
        said = finish(*sides, seconds=2 * SECONDS)
    print(json.dumps({process: one["rounds"] for process, one in zip(processes, said, strict=True)}))


if __name__ == "__main__":
    main()
