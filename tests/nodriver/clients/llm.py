"""SmolLM2 in tinygrad: its server, and its model driven token by token, on any of tinygrad's devices.

``python -m tests.nodriver.clients.llm`` writes ``tests/fixtures/clients/smollm2.json`` anew: what DEV=CPU answers, with
clang, so that the tests need none.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.nodriver.clients import place
from tools.steps import ROOT

ANSWERS = ROOT / "tests" / "fixtures" / "clients" / "smollm2.json"
QUESTION = "What is the capital of France?"
WORDS = 16
"""The most tokens of an answer."""
PROMPT = "The capital of France is"
COUNT = 20
CONTEXT = 256
SECONDS = 300.0
ENDING = 30.0


def environment(device: str, **variables: str) -> dict[str, str]:
    cache = place.made("tinygrad") / f"llm-{device.replace(':', '-')}.db"
    return {"DEV": device, "CACHEDB": str(cache)} | variables


def answer(device: str, under: Sequence[str] = (), **variables: str) -> dict[str, Any]:
    """What ``python -m tinygrad.llm -m MODEL --serve PORT`` answers to a chat completion, without temperature.
    ``under``: a command that the server is started by."""
    with serving(device, under, **variables) as (server, port):
        return asked(server, port, time.monotonic() + SECONDS)


@contextmanager
def serving(device: str, under: Sequence[str] = (), **variables: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A server, which may not listen yet, and its port. What it said is shown if the block fails."""
    port = free_port()
    command = [*under, sys.executable, "-m", "tinygrad.llm", "-m", str(place.model()), "--max_context", str(CONTEXT)]
    command += ["--serve", str(port)]
    with tempfile.TemporaryFile("w+") as output:
        server = subprocess.Popen(command, env=place.environment(**environment(device, **variables)), stdout=output,
                                  stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            yield server, port
        except (OSError, AssertionError) as error:
            output.seek(0)
            raise AssertionError(f"{error}\n{output.read()[-8000:]}") from error
        finally:
            server.terminate()
            try:
                server.wait(ENDING)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def asked(server: subprocess.Popen[bytes], port: int, deadline: float) -> dict[str, Any]:
    """The answer, as soon as the server listens."""
    messages = [{"role": "user", "content": QUESTION}]
    body = {"model": "smollm2", "messages": messages, "temperature": 0, "max_tokens": WORDS}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    while True:
        assert server.poll() is None, f"the server ended with {server.returncode}"
        assert time.monotonic() < deadline, "no server in time"
        try:
            with urllib.request.urlopen(request, timeout=max(1.0, deadline - time.monotonic())) as reply:
                found = json.loads(reply.read())
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError):
                raise
            time.sleep(0.1)
            continue
        assert isinstance(found, dict)
        return found


def greedy(device: str, forced: list[int], **variables: str) -> dict[str, Any]:
    """The steps of ``programs/tokens.py``; ``forced`` tokens are gone on with where there are some."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "steps.json")
        place.run("tokens.py", place.model(), results, PROMPT, str(COUNT), *map(str, forced), seconds=SECONDS,
                  **environment(device, **variables))
        found = json.loads(results.read_text())
    assert isinstance(found, dict)
    return found


def main() -> None:
    reply = answer("CPU")
    found = {
        "question": QUESTION,
        "answer": {"message": reply["choices"][0]["message"], "usage": reply["usage"]},
        "prompt": PROMPT,
        "steps": greedy("CPU", [])["steps"],
    }
    ANSWERS.parent.mkdir(exist_ok=True)
    ANSWERS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
