"""A llama model with random weights, small enough to carry: ``python -m tests.device.model FILE`` writes it.

Its vocabulary are the 256 bytes and five special tokens, so that every answer can be decoded.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

SPECIAL = ("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
NORMAL, CONTROL = 1, 3
"""Types of tokens."""
WIDTH, HIDDEN, HEADS, KV_HEADS, BLOCKS, CONTEXT = 64, 128, 4, 2, 2, 256


def byte_tokens() -> list[str]:
    """A printable character for each byte, as byte-level vocabularies have them: itself where it is one."""
    plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in plain else next(others)) for byte in range(256)]


def write(file: Path) -> None:
    from gguf import GGUFWriter

    numbers = np.random.default_rng(0)
    tokens = [*byte_tokens(), *SPECIAL]
    writer = GGUFWriter(file, "llama")
    writer.add_name("tiny")
    for add, value in (
        (writer.add_context_length, CONTEXT), (writer.add_embedding_length, WIDTH), (writer.add_block_count, BLOCKS),
        (writer.add_feed_forward_length, HIDDEN), (writer.add_head_count, HEADS), (writer.add_head_count_kv, KV_HEADS),
        (writer.add_layer_norm_rms_eps, 1e-5), (writer.add_rope_freq_base, 10000.0),
        (writer.add_rope_dimension_count, WIDTH // HEADS), (writer.add_tokenizer_model, "gpt2"),
        (writer.add_tokenizer_pre, "llama-bpe"), (writer.add_token_list, tokens),
        (writer.add_token_types, [NORMAL] * 256 + [CONTROL] * len(SPECIAL)), (writer.add_token_merges, []),
        (writer.add_bos_token_id, 256), (writer.add_eos_token_id, 260),
    ):  # fmt: skip
        add(value)
    small = WIDTH // HEADS * KV_HEADS
    shapes = {"attn_q": (WIDTH, WIDTH), "attn_k": (small, WIDTH), "attn_v": (small, WIDTH),
              "attn_output": (WIDTH, WIDTH), "ffn_gate": (HIDDEN, WIDTH), "ffn_up": (HIDDEN, WIDTH),
              "ffn_down": (WIDTH, HIDDEN)}
    matrices = {"token_embd": (len(tokens), WIDTH), "output": (len(tokens), WIDTH)}
    matrices |= {f"blk.{n}.{name}": shape for n in range(BLOCKS) for name, shape in shapes.items()}
    for name, shape in matrices.items():
        writer.add_tensor(f"{name}.weight", (numbers.standard_normal(shape) / shape[1] ** 0.5).astype(np.float16))
    norms = [f"blk.{n}.{name}" for n in range(BLOCKS) for name in ("attn_norm", "ffn_norm")]
    for name in ("output_norm", *norms):
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
