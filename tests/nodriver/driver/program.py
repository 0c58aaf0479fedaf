"""Python programs with the software driver that a test tells step by step what to do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tessera.environment import DEVICES, MACHINE
from tests.nodriver.driver.client import HEAD
from tools import driver

SECONDS = 60
LOOP = """
for step_ in sys.stdin:
    code_, wanted_ = json.loads(step_)
    exec(code_, globals())
    print(json.dumps(eval(wanted_, globals())), flush=True)
"""


class Program:
    """A process on a machine. ``prelude`` is code that it begins with."""

    def __init__(self, folder: Path, machine: str, devices: str, prelude: str, files: Sequence[int] = ()) -> None:
        environment = {name: text for name, text in os.environ.items() if not name.startswith("SOFTGPU_")}
        environment |= {DEVICES.name: devices, "XDG_RUNTIME_DIR": str(folder)}
        if machine:
            environment[MACHINE.name] = machine
        self.process = subprocess.Popen(
            [sys.executable, "-c", HEAD + prelude + LOOP, driver.LIBRARY], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=files,
        )

    def run(self, code: str, wanted: str = "None") -> Any:
        """Run code, and what an expression is then."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps([code, wanted]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, self.end()
        return json.loads(answer)

    def get(self, wanted: str) -> Any:
        return self.run("", wanted)

    def end(self, hard: bool = False) -> str:
        """Its standard error, once it has ended; ``hard``: by SIGKILL."""
        if hard:
            self.process.send_signal(signal.SIGKILL)
        return self.process.communicate(timeout=SECONDS)[1]
