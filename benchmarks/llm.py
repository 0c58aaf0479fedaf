"""SmolLM2-135M in tinygrad: tokens a second on the software driver beside tinygrad's CPU device with clang, in turn."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from _common import ROOT, Row
from _engine_report import print_rows
from _engine_timing import Measured, Times, share

from tests.nodriver.clients import llm, place

YARDSTICK = "CPU"
DEVICES = {
    YARDSTICK: "tinygrad's CPU device, clang",
    "CUDA": "software driver, NVRTC",
    "CUDA:PTX": "software driver, tinygrad's PTX",
}
TURNS, TOKENS = 7, 8
PROGRAM = ROOT / "benchmarks" / "_llm_decode.py"


@dataclass
class Decoder:
    """A process that decodes on one device, and the seconds of a token in each of its turns."""

    device: str
    process: subprocess.Popen[str]
    turns: list[float] = field(default_factory=list)
    text: str = ""

    def turn(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{TOKENS}\n")
        self.process.stdin.flush()
        found = json.loads(self.process.stdout.readline())
        self.turns.append(statistics.median(found["seconds"]))
        self.text = found["text"]

    def times(self) -> Times:
        return Times(statistics.median(self.turns), min(self.turns))


def decoder(device: str, model: Path) -> Decoder:
    """A process that has recorded its programs; they start one after the other."""
    process = subprocess.Popen([sys.executable, PROGRAM, model], env=place.environment(**llm.environment(device)),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    if process.stdout.readline() != "ready\n":
        process.wait()
        raise SystemExit(f"the process for DEV={device} ended with {process.returncode}")
    return Decoder(device, process)


def measured() -> list[Decoder]:
    model = place.model()
    decoders: list[Decoder] = []
    try:
        for device in DEVICES:
            decoders.append(decoder(device, model))
        for _ in range(TURNS):
            for one in decoders:
                one.turn()
    finally:
        for one in decoders:
            one.process.kill()
            one.process.wait()
    return decoders


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    options = parser.parse_args()
    if shutil.which("clang") is None:
        raise SystemExit("no clang, which tinygrad's CPU device needs (Debian and Ubuntu: package clang)")
    before = os.getloadavg()[0]
    decoders = measured()
    rows: list[Row] = []
    for one in decoders:
        times = one.times()
        rows.append(Measured(DEVICES[one.device], 1 / times.median, "tokens/s", best=1 / times.best))
    for one in decoders[1:]:
        rows.append(share(f"{DEVICES[one.device]}, of {DEVICES[YARDSTICK]}", one.times(), decoders[0].times(), 0.7))
    agree = all(one.text == decoders[0].text for one in decoders)
    notes = f"{TURNS} turns of {TOKENS} tokens. The texts {'agree' if agree else 'differ'}: {decoders[0].text!r}. "
    notes += f"Load of the machine before and after: {before:.1f}, {os.getloadavg()[0]:.1f}."
    return print_rows("llm", rows, options.json, notes)


if __name__ == "__main__":
    sys.exit(main())
