"""One of the processes that ``llm`` compares: tinygrad's model on tinygrad's default device, as ``MODEL``.

It says ``ready`` when its programs are recorded; then for each line with a count it decodes so many tokens and says how
many seconds each took, and the text so far.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from tinygrad.llm.cli import SimpleTokenizer
from tinygrad.llm.model import Transformer

CONTEXT = 512
PROMPT = "Once upon a time"
WARM = 4
"""Tokens until tinygrad has recorded its programs and repeats them."""


def main() -> None:
    model, keys = Transformer.from_gguf(Path(sys.argv[1]), CONTEXT)
    tokenizer = SimpleTokenizer.from_gguf_kv(keys)
    tokens = tokenizer.encode(PROMPT)[:1]  # one token: nothing but decoding is compiled
    made = model.generate(tokens)
    for _ in range(WARM):
        next(made)
    print("ready", flush=True)
    for line in sys.stdin:
        seconds = []
        for _ in range(int(line)):
            begin = time.perf_counter()
            next(made)
            seconds.append(time.perf_counter() - begin)
        print(json.dumps({"seconds": seconds, "text": tokenizer.decode(tokens)}), flush=True)


if __name__ == "__main__":
    main()
