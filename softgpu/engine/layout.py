"""Where variables lie: shared memory of the block, local memory of the thread, parameters, module variables."""

from __future__ import annotations

from ptxparse.model import Address, Function, Module, Operand, Pair, Symbol, Variable, Vector, parameter_layout
from softgpu.engine.flatten import FUNCTION_SPACING, Flat

SHARED_WINDOW = 1 << 48
LOCAL_WINDOW = 2 << 48
PARAM_WINDOW = 3 << 48
CODE_WINDOW = 4 << 48
WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW}


class Layout:
    """Offsets by name of what the kernel mentions; ``globals`` are the module variables it needs, in order.

    ``static_shared`` and ``dynamic_base`` in bytes, laid out in the order of declaration as the interpreter does.
    """

    def __init__(self, module: Module, flat: Flat) -> None:
        self.flat = flat
        slots, self.param_bytes = parameter_layout(flat.kernel)
        self.params = {slot.name: slot.offset for slot in slots}
        mentioned: set[str] = set()
        for instruction in flat.instructions:
            for operand in instruction.operands:
                _mention(operand, mentioned)
        self.shared: dict[str, int] = {}
        self._lay_out_shared(mentioned)
        self.locals: dict[str, int] = {}
        end = 0
        for name, variable in flat.locals.items():
            align = max(variable.align, 1)
            end = -(-end // align) * align
            self.locals[name] = end
            end += variable.size
        self.local_bytes = -(-end // 16) * 16
        self.globals = [name for name in flat.globals if name in mentioned and name not in self.params
                        and name not in self.locals and name not in self.shared]
        self.aliases = module.aliases

    def _lay_out_shared(self, mentioned: set[str]) -> None:
        offset = 0
        align = 16
        chosen = [(name, v) for name, v in self.flat.shared.items() if ":" in name or name in mentioned]
        for name, variable in chosen:
            if is_open(variable):
                align = max(align, variable.align)
                continue
            offset = -(-offset // variable.align) * variable.align
            self.shared[name] = offset
            offset += variable.size
        self.static_shared = offset
        self.dynamic_base = -(-offset // align) * align
        self.uses_shared = bool(chosen)
        for name, variable in chosen:
            if is_open(variable):
                self.shared[name] = self.dynamic_base

    def space_of(self, name: str) -> str | None:
        """State space of a symbol: param, shared, local, global, const; None for what is no variable."""
        if name in self.params:
            return "param"
        if name in self.locals:
            return "local"
        if name in self.shared:
            return "shared"
        variable = self.flat.globals.get(name)
        return None if variable is None else variable.space

    def offset_of(self, name: str) -> int:
        """Offset of a parameter, shared or local variable in its space."""
        for table in (self.params, self.locals, self.shared):
            if name in table:
                return table[name]
        raise KeyError(name)

    def constant_address(self, symbol: Symbol) -> int | None:
        """Address of a symbol in its space where it is known now: shared, local and parameter offsets, functions."""
        if symbol.name.startswith("@"):
            return CODE_WINDOW + FUNCTION_SPACING * (int(symbol.name[1:]) + 1)
        if self.space_of(symbol.name) in ("param", "shared", "local"):
            return self.offset_of(symbol.name) + symbol.offset
        if symbol.name in self.flat.globals:
            return None
        name = self.aliases.get(symbol.name, symbol.name)
        number = self.flat.functions.get(name)
        if number is not None:
            return CODE_WINDOW + FUNCTION_SPACING * (number + 1) + symbol.offset
        return None


def is_open(variable: Variable) -> bool:
    """Dynamic shared memory: ``extern .shared x[]``."""
    return variable.size == 0 or variable.linkage == "extern"


def _mention(operand: Operand, names: set[str]) -> None:
    if isinstance(operand, Symbol):
        names.add(operand.name)
    elif isinstance(operand, Address):
        _mention(operand.base, names)
        for extra in operand.extra:
            _mention(extra, names)
    elif isinstance(operand, Vector):
        for item in operand.items:
            _mention(item, names)
    elif isinstance(operand, Pair):
        _mention(operand.first, names)


def entry_of(module: Module, name: str) -> Function | None:
    """The kernel of that name, with a body."""
    function = module.function(name)
    return function if function is not None and function.is_entry and function.instructions is not None else None
