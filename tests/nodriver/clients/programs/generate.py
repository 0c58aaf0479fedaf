"""Greedy generation with the first blocks of a model in tinygrad: ``generate.py MODEL BLOCKS WORDS COUNT``.

BLOCKS and WORDS, of its vocabulary, are as many as are taken; with fewer than there are it says nonsense, but reads and
writes as the model does. One token after the other is fed, COUNT in all, and each is the greatest logit's of the one
before; the first is 1. They are printed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tinygrad import Tensor, TinyJit, UOp
from tinygrad.llm.model import Transformer

CONTEXT = 128


def main() -> None:
    blocks, words, count = [int(word) for word in sys.argv[2:]]
    model, _ = Transformer.from_gguf(Path(sys.argv[1]), CONTEXT)
    place = UOp.variable("start_pos", 0, CONTEXT - 1)
    head = model.output.weight[:words]

    @TinyJit
    def logits_of(token: Tensor, start: UOp) -> Tensor:
        x = model.token_embd(token).float()
        for block in model.blk[:blocks]:
            x = block(x, start)
        return model.output_norm(x)[:, -1, :].linear(head.T).realize()

    token = 1
    for position in range(count):
        given = Tensor([[token]], dtype="int32").contiguous().realize()
        token = int(logits_of(given, place.bind(position)).numpy()[0].argmax())
        print(token)


if __name__ == "__main__":
    main()
