"""Registers whose values the present block has at hand, so that their variables need not be loaded again.

Every register is a variable in memory that LLVM makes a value of; what need not be written and read again need not be
undone. A value is at hand behind the place that computes it. Within an instruction that may branch, that is sure for
what its first block computes, and for what the same block does; behind the instruction, for what its first and its last
block computed.
"""

from __future__ import annotations

from softgpu.engine.ir import Value

Form = tuple[str, bool]
"""Type of a value, and whether NaNs are canonical in it."""


class Present:
    """Values by web and form. ``label`` is the block of LLVM IR in which instructions are being written."""

    def __init__(self) -> None:
        self.label = ""
        self._first = ""
        self._settled: dict[int, dict[Form, Value]] = {}
        self._new: dict[int, dict[Form, tuple[str, Value]]] = {}

    def begin(self) -> None:
        """A block of the kernel begins: nothing is at hand."""
        self._first = self.label
        self._settled.clear()
        self._new.clear()

    def next(self) -> None:
        """An instruction of the kernel is written."""
        for web, forms in self._new.items():
            kept = {form: value for form, (label, value) in forms.items() if label in (self._first, self.label)}
            if kept:
                self._settled.setdefault(web, {}).update(kept)
        self._new.clear()
        self._first = self.label

    def find(self, web: int, form: Form) -> Value | None:
        forms = self._new.get(web)
        if forms is not None and form in forms:
            label, value = forms[form]
            return value if label in (self._first, self.label) else None
        forms_before = self._settled.get(web)
        return None if forms_before is None else forms_before.get(form)

    def note(self, web: int, form: Form, value: Value) -> None:
        self._new.setdefault(web, {})[form] = (self.label, value)

    def forget(self, web: int) -> None:
        """The register gets another value."""
        self._settled.pop(web, None)
        self._new.pop(web, None)
