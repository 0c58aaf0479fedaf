"""Access programs to JSON and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ptxparse.program import (
    VERSION,
    Access,
    AccessProgram,
    Base,
    Limit,
    LoopBound,
    Parameter,
    Work,
)
from ptxparse.validate import validate
from ptxparse.values import Check
from tessera.errors import TesseraError
from tessera.reasons import Reason, reason

SCHEMA = "tessera.access-program"


class ProgramFormatError(TesseraError):
    """A stored access program that cannot be read: another version, or not one at all."""


def program_to_json(program: AccessProgram) -> str:
    """The program as JSON text: an object with ``schema``, ``version`` and one member for each field."""
    plain: dict[str, Any] = {"schema": SCHEMA}
    plain.update((field.name, getattr(program, field.name)) for field in fields(program))
    return json.dumps(plain, separators=(",", ":"))


def program_from_json(text: str) -> AccessProgram:
    """The program that :func:`program_to_json` wrote. Raises :class:`ProgramFormatError`."""
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProgramFormatError(f"an access program should be JSON text: {error}") from error
    return program_from_plain(plain)


def program_from_plain(plain: Mapping[str, Any]) -> AccessProgram:
    """The program from its parsed JSON object."""
    if not isinstance(plain, dict) or plain.get("schema") != SCHEMA:
        raise ProgramFormatError(f'an access program should be an object with "schema": "{SCHEMA}"')
    if plain.get("version") != VERSION:
        raise ProgramFormatError(f"access program of version {plain.get('version')}, expected {VERSION}: analyse again")
    try:
        program = _program(plain)
        validate(program)
        return program
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ProgramFormatError(f"access program with a missing or wrong member: {error!r}") from error


def _program(plain: Mapping[str, Any]) -> AccessProgram:
    p = {name: _tuples(value) for name, value in plain.items()}
    return AccessProgram(
        kernel=p["kernel"],
        line=p["line"],
        parameters=tuple(Parameter(*item) for item in p["parameters"]),
        parameter_bytes=p["parameter_bytes"],
        nodes=p["nodes"],
        low=p["low"],
        high=p["high"],
        uniform=p["uniform"],
        loops=tuple(LoopBound(c, _limits(limits), _limits(guards), exact) for c, limits, guards, exact in p["loops"]),
        accesses=tuple(map(_access, p["accesses"])),
        global_sizes=dict(plain["global_sizes"]),
        escapes=p["escapes"],
        opaque=None if p["opaque"] is None else reason(p["opaque"]),
        opaque_line=p["opaque_line"],
        problems=_reasons(p["problems"]),
        pinned=_reasons(p["pinned"]),
        deterministic=p["deterministic"],
        device_invariant=p["device_invariant"],
        work=tuple(Work(_limits(guards), *rest) for guards, *rest in p["work"]),
        unresolved=p["unresolved"],
    )


def _access(plain: tuple[Any, ...]) -> Access:
    kind, bases, offset, spans, guards, uniform, checks, *rest = plain
    return Access(
        kind, tuple(Base(*base) for base in bases), offset, spans, _limits(guards), uniform, _checks(checks), *rest
    )


def _limits(plain: tuple[Any, ...]) -> tuple[Limit, ...]:
    return tuple(Limit(value, relation, _checks(checks)) for value, relation, checks in plain)


def _checks(plain: tuple[Any, ...]) -> tuple[Check, ...]:
    return tuple(Check(*check) for check in plain)


def _reasons(plain: tuple[Any, ...]) -> tuple[tuple[Reason, int], ...]:
    return tuple((reason(value), line) for value, line in plain)


def _tuples(value: Any) -> Any:
    """Lists, at any depth, as tuples. Programs nest a fixed number of levels, so recursion is bounded."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
