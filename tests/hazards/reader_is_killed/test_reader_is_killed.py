"""P36: whoever reads is killed, and programs hang in their next call.

The program under ``tessera run``, killed with all its relays, goes on to its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests import null_driver
from tests.hazards.conftest import Build
from tests.hazards.kit import environment

LAUNCHES = 30_000
SECONDS = 20


def relays(parent: int) -> list[int]:
    """The processes that a process, whichever of its threads, has started to read."""
    children = [int(child) for task in Path(f"/proc/{parent}/task").iterdir()
                for child in (task / "children").read_text().split()]
    return [child for child in children if "shim.relay" in Path(f"/proc/{child}/cmdline").read_text()]


def test_the_program_goes_on(build: Build) -> None:
    library, program = null_driver.build(), build("program.c")
    command = [sys.executable, "-m", "tessera", "run", "--driver", library, "--", program, str(LAUNCHES)]
    with subprocess.Popen(command, env=environment(library, {}, preload=()), stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reader:
        assert reader.stdin and reader.stdout
        assert reader.stdout.readline() == "ready\n"
        end = time.monotonic() + SECONDS
        while not (others := relays(reader.pid)):
            assert time.monotonic() < end, "there is no relay"
            time.sleep(0.01)
        for process in (reader.pid, *others):
            os.kill(process, signal.SIGKILL)
        reader.stdin.write("go\n")
        reader.stdin.flush()
        watch = subprocess.run(["timeout", str(SECONDS), "cat"], stdin=reader.stdout, capture_output=True, text=True,
                               check=False)
        assert (watch.returncode, watch.stdout) == (0, "done\n"), "it hangs"
