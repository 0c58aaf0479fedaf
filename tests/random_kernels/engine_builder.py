"""The builder of kernels for the engine: it knows who executes a statement together; threads own what they write."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from tests.random_kernels.builder import Builder, Value

ROW_BYTES = 64
COLUMNS = 48
INPUT_WORDS = 8192
SHARED_SLOT = 16
"""Bytes of shared memory of each thread, in each of two arrays."""
WORDS = {"r": "b32", "rd": "b64", "rs": "b16", "f": "b32"}


class EngineBuilder(Builder):
    """``mask``: text of an operand that names all threads of the warp that execute the present statement together (it
    may name some that have ended), or None where that is not known. ``together``: all threads of the block do.
    ``columns``: number of OUT's columns in use, ``words``: bytes in use of the buffer of atomics."""

    def __init__(self, choose: random.Random, suffix: str = "") -> None:
        super().__init__(choose, suffix)
        self.mask: str | None = None
        self.together = False
        self.columns = 0
        self.tickets = 0
        self.names: dict[str, Value] = {}

    @contextmanager
    def apart(self, mask: str | None = None) -> Iterator[None]:
        """Statements that some of the threads execute: those in ``mask`` if it is known."""
        before = self.mask, self.together
        self.mask, self.together = mask, False
        yield
        self.mask, self.together = before

    @contextmanager
    def same(self, together: bool) -> Iterator[None]:
        """Statements that all or none of those threads execute that are together now."""
        before = self.together
        self.together = before and together
        yield
        self.together = before

    def named(self, name: str, kind: str, *texts: str) -> Value:
        """A fixed register computed once in the prologue; ``{d}`` in the texts is its name."""
        if name not in self.names:
            value = self.fresh(kind, 30, fixed=True)
            self.names[name] = value
            for text in texts:
                self.prologue.append(f"\t{text.format(d=value.name)};")
        return self.names[name]

    def linear(self) -> Value:
        """The linear index of the thread in its block."""
        t = [self.fresh("r").name for _ in range(5)]
        if "linear" in self.names:
            return self.names["linear"]
        return self.named(
            "linear", "r", f"mov.u32 {t[0]}, %tid.x", f"mov.u32 {t[1]}, %tid.y", f"mov.u32 {t[2]}, %tid.z",
            f"mov.u32 {t[3]}, %ntid.x", f"mov.u32 {t[4]}, %ntid.y", f"mad.lo.s32 {{d}}, {t[2]}, {t[4]}, {t[1]}",
            f"mad.lo.s32 {{d}}, {{d}}, {t[3]}, {t[0]}")

    def threads(self) -> Value:
        """Threads of a block."""
        if "threads" in self.names:
            return self.names["threads"]
        t = [self.fresh("r").name for _ in range(3)]
        return self.named("threads", "r", *[f"mov.u32 {n}, %ntid.{a}" for n, a in zip(t, "xyz", strict=True)],
                          f"mul.lo.s32 {{d}}, {t[0]}, {t[1]}", f"mul.lo.s32 {{d}}, {{d}}, {t[2]}")

    def block_index(self) -> Value:
        """The linear index of the block."""
        if "block" in self.names:
            return self.names["block"]
        t = [self.fresh("r").name for _ in range(5)]
        return self.named("block", "r", *[f"mov.u32 {n}, %ctaid.{a}" for n, a in zip(t, "xyz", strict=False)],
                          f"mov.u32 {t[3]}, %nctaid.x", f"mov.u32 {t[4]}, %nctaid.y",
                          f"mad.lo.s32 {{d}}, {t[2]}, {t[4]}, {t[1]}", f"mad.lo.s32 {{d}}, {{d}}, {t[3]}, {t[0]}")

    def thread(self) -> Value:
        """The linear index of the thread in the grid."""
        block, threads, linear = self.block_index(), self.threads(), self.linear()
        return self.named("thread", "r", f"mad.lo.s32 {{d}}, {block.name}, {threads.name}, {linear.name}")

    def total(self) -> Value:
        """Threads of the grid."""
        if "total" in self.names:
            return self.names["total"]
        threads = self.threads()
        t = [self.fresh("r").name for _ in range(3)]
        return self.named("total", "r", *[f"mov.u32 {n}, %nctaid.{a}" for n, a in zip(t, "xyz", strict=True)],
                          f"mul.lo.s32 {{d}}, {t[0]}, {t[1]}", f"mul.lo.s32 {{d}}, {{d}}, {t[2]}",
                          f"mul.lo.s32 {{d}}, {{d}}, {threads.name}")

    def parameter(self, name: str) -> Value:
        """A pointer parameter, as a global address or (by chance, for the whole kernel) a generic one."""
        if name in self.names:
            return self.names[name]
        convert = [] if "generic" in self.traits else ["cvta.to.global.u64 {d}, {d}"]
        return self.named(name, "rd", f"ld.param.u64 {{d}}, [{name}]", *convert)

    @property
    def space(self) -> str:
        """The state space in accesses to buffers."""
        return "" if "generic" in self.traits else ".global"

    def row(self) -> Value:
        """Address of the thread's own row of ``ROW_BYTES`` in OUT."""
        out, thread = self.parameter("OUT"), self.thread()
        return self.named("row", "rd", f"mad.wide.u32 {{d}}, {thread.name}, {ROW_BYTES}, {out.name}")

    def column(self) -> Value:
        """Address of the thread's place in the first column; columns are 8 bytes times all threads apart."""
        start, thread = self.parameter("COL"), self.thread()
        return self.named("column", "rd", f"mad.wide.u32 {{d}}, {thread.name}, 8, {start.name}")

    def store_column(self, value: Value) -> None:
        """Keep a value for the comparison, in a column of its own as long as there are any."""
        number = self.columns % COLUMNS
        self.columns += 1
        at = self.fresh("rd")
        total = self.total()
        step = self.named("step", "rd", f"mul.wide.u32 {{d}}, {total.name}, 8")
        self.emit(f"mad.lo.s64 {at.name}, {step.name}, {number}, {self.column().name}")
        self.emit(f"st{self.space}.{WORDS[value.kind]} [{at.name}], {value.name}")
