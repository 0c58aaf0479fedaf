"""Parsing: megabytes a second beside a plain split of the same text, and the memory that a large module takes."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from _common import ROOT, RUNS, Row, alternating, arguments, report, texts

from ptxparse.parser import parse

LARGE = 10_000_000
_SPLIT = re.compile(r"[;\n]")
_HEADER = re.compile(r"^\s*\.(version|target|address_size)\b.*$", re.MULTILINE)
_PROBE = """
import resource, sys, time
sys.path.insert(0, {root!r})
from ptxparse.{module} import {names}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
text = open({path!r}).read()
begin = time.process_time()
module = parse(text)
{then}
took = time.process_time() - begin
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, before, took, len(module.entries))
"""


def large_module(size: int) -> str:
    """One module of about ``size`` characters: the kernels of the texts again and again under new names."""
    _, files = texts()
    parts = [".version 9.5\n.target sm_90a\n.address_size 64\n"]
    length, round_ = 0, 0
    while length < size:
        for name, text in files:
            body = _HEADER.sub("", text)
            for function in parse(text, name).functions:
                written = rf"(?<![\w$]){re.escape(function.name)}(?=$|[^\w$]|_param)"
                body = re.sub(written, f"{function.name}_{round_}", body)
            parts.append(body)
            length += len(body)
            if length >= size:
                break
        round_ += 1
    return "\n".join(parts)


def peak_memory(path: str, analysed: bool) -> tuple[float, float]:
    """Peak resident megabytes and processor seconds of a process that reads (and analyses) the module."""
    module, names, then = ("api", "analyze, parse", "analyze(module)") if analysed else ("parser", "parse", "")
    probe = _PROBE.format(root=str(ROOT), path=path, module=module, names=names, then=then)
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    peak, _, took, _ = done.stdout.split()
    return int(peak) * 1024 / 1e6, float(took)


def main() -> int:
    options = arguments(__doc__)
    source, files = texts()
    size = sum(len(text) for _, text in files)
    ours, yardstick = alternating(
        lambda: [parse(text, name) for name, text in files], lambda: [_SPLIT.split(text) for _, text in files]
    )
    rows = [
        Row("parse", size / ours / 1e6, "MB/s", 3, at_least=True),
        Row("regular expression split of the same text", size / yardstick / 1e6, "MB/s"),
        Row("parse : split, time", ours / yardstick, "x"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.ptx"
        path.write_text(large_module(LARGE))
        megabytes = path.stat().st_size / 1e6
        peak, took = peak_memory(str(path), analysed=False)
        rows.append(Row(f"peak memory, module of {megabytes:.1f} MB, parsed", peak, "MB", 400))
        rows.append(Row("the same module, parse", megabytes / took, "MB/s", 3, at_least=True))
        peak, took = peak_memory(str(path), analysed=True)
        rows.append(Row("peak memory, the same module, parsed and analysed", peak, "MB", 400))
        rows.append(Row("the same module, parse and analysis", took, "s"))
    notes = f"{len(files)} files of the {source}, {size / 1e6:.2f} MB. "
    notes += f"Processor time, median of {RUNS} alternating runs."
    return report("parse", rows, options.json, notes)


if __name__ == "__main__":
    sys.exit(main())
