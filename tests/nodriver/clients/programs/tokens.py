"""tinygrad's own class of the model, driven token by token: ``tokens.py MODEL RESULTS PROMPT COUNT [FORCED...]``.

The tokens of the prompt are fed one at a time, then COUNT tokens, each the greatest logit's unless FORCED ones say what
to go on with. RESULTS is JSON: for each step the token of the greatest logit, and the two greatest logits.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
from tinygrad import Tensor, TinyJit, UOp
from tinygrad.llm.cli import SimpleTokenizer
from tinygrad.llm.model import Transformer

CONTEXT = 128


def main() -> None:
    path, results, prompt, count, forced = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5:]
    model, keys = Transformer.from_gguf(Path(path), CONTEXT)
    tokens = SimpleTokenizer.from_gguf_kv(keys).encode(prompt)
    place = UOp.variable("start_pos", 0, CONTEXT - 1)

    @TinyJit
    def logits_of(token: Tensor, start: UOp) -> Tensor:
        x = model.token_embd(token).float()
        for block in model.blk:
            x = block(x, start)
        return model.output(model.output_norm(x))[:, -1, :].realize()

    def logits_at(position: int, token: int) -> np.ndarray:
        return logits_of(Tensor([[token]], dtype="int32").contiguous().realize(), place.bind(position)).numpy()[0]

    steps, seconds = [], []
    for position, token in enumerate(tokens):
        logits = logits_at(position, token)
    for step in range(count):
        first, second = (int(token) for token in np.argsort(-logits, kind="stable")[:2])
        steps.append({"token": first, "first": float(logits[first]), "second": float(logits[second])})
        chosen = int(forced[step]) if forced else first
        begin = time.perf_counter()
        logits = logits_at(len(tokens) + step, chosen)
        seconds.append(time.perf_counter() - begin)
    Path(results).write_text(json.dumps({"prompt": tokens, "steps": steps, "seconds": seconds}))


if __name__ == "__main__":
    main()
