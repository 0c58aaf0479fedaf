"""Decoding a kernel and what it may call into one program."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ptxparse.model import Address, Function, Instruction, Operand, Pair, Symbol, Variable, Vector, parameter_layout
from softgpu.reference import (
    calls,
    ops_async,
    ops_atomic,
    ops_control,
    ops_float,
    ops_integer,
    ops_logic,
    ops_memory,
    ops_move,
    ops_select,
    ops_stack,
    ops_tensor,
    ops_video,
    ops_warp,
)
from softgpu.reference.decode import Decode, Decoder
from softgpu.reference.errors import UnsupportedInstruction
from softgpu.reference.program import Control, FunctionCode, Kind, Operation, Place, Program
from softgpu.reference.ptx_types import dtype_of

if TYPE_CHECKING:
    from softgpu.reference.issue import Issue
    from softgpu.reference.module import LoadedModule
    from softgpu.reference.strand import Strand

TABLE: dict[str, Decode] = {}
"""Decoder by opcode."""
for _module in (ops_integer, ops_float, ops_logic, ops_select, ops_move, ops_memory, ops_atomic, ops_async, ops_control,
                ops_warp, ops_tensor, ops_stack, ops_video, calls):
    for _opcode, _decode in _module.TABLE.items():
        assert _opcode not in TABLE, _opcode
        TABLE[_opcode] = _decode


def link(loaded: LoadedModule, kernel: Function) -> Program:
    """The program of a kernel. What cannot be decoded is listed in ``unsupported`` and raises when executed."""
    program = Program(kernel)
    for number, function in enumerate(_reachable(loaded, kernel)):
        program.functions.append(FunctionCode(function, number))
    _lay_out_shared(loaded, program)
    for code in program.functions:
        _place_variables(program, code)
        address = loaded.address_of(code.function.name)
        if address is not None:
            program.by_address[address] = code
    position = 0
    for code in program.functions:
        code.first = position
        for instruction in code.function.instructions or ():
            code.position.append(position)
            position += 2 if _takes_two(loaded, instruction) else 1
        code.position.append(position)
        position += 1
    for code in program.functions:
        for instruction in code.function.instructions or ():
            _append(loaded, program, code, instruction)
        program.code.append(_end(code))
    return program


def _takes_two(loaded: LoadedModule, instruction: Instruction) -> bool:
    """Calls take two operations, the jump and what follows the return, unless the interpreter provides the function."""
    if instruction.opcode != "call":
        return False
    target = instruction.operands[1]
    if not isinstance(target, Symbol):
        return True
    function = loaded.module.function(target.name)
    return function is not None and function.instructions is not None


def _reachable(loaded: LoadedModule, kernel: Function) -> list[Function]:
    """The kernel and the functions it may call; with an indirect call, every function of the module."""
    found = [kernel]
    for function in found:
        for instruction in function.instructions or ():
            if instruction.opcode != "call":
                continue
            target = instruction.operands[1]
            if isinstance(target, Symbol):
                callee = loaded.module.function(target.name)
                candidates = [callee] if callee is not None else []
            else:
                candidates = [f for f in loaded.module.functions if not f.is_entry]
            for callee in candidates:
                if callee.instructions is not None and all(callee is not f for f in found):
                    found.append(callee)
    return found


def _lay_out_shared(loaded: LoadedModule, program: Program) -> None:
    """Offsets of the shared variables that the program mentions; open ones all begin behind the others."""
    mentioned: set[str] = set()
    for code in program.functions:
        for instruction in code.function.instructions or ():
            for operand in instruction.operands:
                _mention(operand, mentioned)
    variables = [v for v in loaded.module.variables if v.space == "shared" and v.name in mentioned]
    fixed = [(v.name, v) for v in variables]
    for code in program.functions:
        fixed += [(f"{code.number}:{v.name}", v) for v in code.function.variables if v.space == "shared"]
    offset = 0
    align = 16
    for name, variable in fixed:
        if _is_open(variable):
            align = max(align, variable.align)
            continue
        offset = -(-offset // variable.align) * variable.align
        program.shared[name] = offset
        offset += variable.size
    program.static_shared = offset
    program.dynamic_base = -(-offset // align) * align
    for name, variable in fixed:
        if _is_open(variable):
            program.shared[name] = program.dynamic_base
            program.has_dynamic_shared = True
    program.shared_variables = {v.name: v for v in variables}


def _is_open(variable: Variable) -> bool:
    return variable.size == 0 or variable.linkage == "extern"


def _mention(operand: Operand, names: set[str]) -> None:
    if isinstance(operand, Symbol):
        names.add(operand.name)
    elif isinstance(operand, Address):
        _mention(operand.base, names)
    elif isinstance(operand, Vector):
        for item in operand.items:
            _mention(item, names)
    elif isinstance(operand, Pair):
        _mention(operand.first, names)


def _place_variables(program: Program, code: FunctionCode) -> None:
    function = code.function
    for variable in program.shared_variables.values():
        code.places[variable.name] = Place("shared", program.shared[variable.name], variable)
    in_frame: list[Variable] = []
    if function.is_entry:
        slots, size = parameter_layout(function)
        for slot in slots:
            code.places[slot.name] = Place("param", slot.offset, slot.variable)
        if code.number == 0:
            program.parameter_bytes = size
    else:
        for variable in function.parameters + function.results:
            if variable.space == "reg":
                code.places[variable.name] = Place("reg", 0, variable)
                code.slot(variable.name, variable.type, dtype_of(variable.type))
            else:
                in_frame.append(variable)
    for variable in function.variables:
        if variable.space == "shared":
            offset = program.shared[f"{code.number}:{variable.name}"]
            code.places[variable.name] = Place("shared", offset, variable)
        elif variable.space in ("local", "param"):
            in_frame.append(variable)
    offset = 0
    for variable in in_frame:
        align = max(variable.align, 1)
        offset = -(-offset // align) * align
        code.places[variable.name] = Place("local", offset, variable)
        offset += variable.size
    code.frame_bytes = offset


def _append(loaded: LoadedModule, program: Program, code: FunctionCode, instruction: Instruction) -> None:
    decoder = Decoder(loaded, program, code, instruction)
    try:
        decode = TABLE.get(instruction.opcode)
        if decode is None:
            decoder.fail("unknown opcode")
        decode(decoder)
        if instruction.predicate is not None:
            slot, kind = decoder.register(instruction.predicate.name)
            if kind != "pred":
                decoder.fail(f"guard {instruction.predicate.name} is not a predicate")
            decoder.operation.guard = slot
            decoder.operation.negated = instruction.negated
    except UnsupportedInstruction as error:
        program.unsupported.append(error)
        decoder.operation.kind = Kind.CONTROL
        decoder.operation.control = _refusal(error)
    program.code.append(decoder.operation)
    if _takes_two(loaded, instruction):
        program.code.append(decoder.second or _end(code))


def _refusal(error: UnsupportedInstruction) -> Control:
    def control(strand: Strand, x: Issue, key: int) -> NoReturn:
        raise error

    return control


def _end(code: FunctionCode) -> Operation:
    """What follows the last instruction: falling off the end is a return."""
    instructions = code.function.instructions
    line = instructions[-1].line if instructions else code.function.line
    operation = Operation("ret", line, code)
    operation.kind = Kind.CONTROL
    operation.counted = False
    operation.control = ops_control.give_back
    return operation

