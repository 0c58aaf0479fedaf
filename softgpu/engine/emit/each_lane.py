"""Internal functions that do something for one active lane after another, in LLVM IR."""

from __future__ import annotations

from collections.abc import Sequence

from softgpu.engine.ir import Builder

_COUNT_ZEROS = "declare i32 @llvm.cttz.i32(i32, i1)"


def define(builder: Builder, name: str, parameters: str, body: str, *, before: str = "", result: str = "",
           declarations: Sequence[tuple[str, str]] = ()) -> None:
    """Add a function to the module, once.

    ``parameters`` must hold ``i32 %mask``. ``body`` runs with ``%lane`` (i64), the lane's number, begins in the block
    ``%one`` and ends by jumping to ``%next``. ``before`` runs first, in ``%entry``; with ``result``, an i32 that it
    computes, the function returns that, and does nothing for the lanes when it is not 0.
    """
    if name in builder.helpers:
        return
    for intrinsic, text in (("llvm.cttz.i32", _COUNT_ZEROS), *declarations):
        builder.declarations.setdefault(intrinsic, text)
    start, kind, leave = "  br label %head", "void", "  ret void"
    if result:
        start = f"  %failed = icmp ne i32 {result}, 0\n  br i1 %failed, label %done, label %head"
        kind, leave = "i32", f"  ret i32 {result}"
    builder.helpers[name] = f"""
define internal {kind} @{name}({parameters}) noinline nounwind {{
entry:
{before}{start}
head:
  %left = phi i32 [ %mask, %entry ], [ %rest, %next ]
  %none = icmp eq i32 %left, 0
  br i1 %none, label %done, label %one
one:
  %number = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %lane = zext i32 %number to i64
{body.rstrip()}
next:
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  br label %head
done:
{leave}
}}
"""
