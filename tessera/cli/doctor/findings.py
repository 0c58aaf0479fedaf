"""What may be wrong here or with a program: one closed list of topics; ``docs/doctor.md`` is compared with it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tessera.environment import DISABLE


class Topic(StrEnum):
    """``value``: the name in JSON. ``problem``: whether something is amiss; the others are good to know."""

    problem: bool
    meaning: str

    def __new__(cls, value: str, problem: bool, meaning: str) -> Topic:
        member = str.__new__(cls, value)
        member._value_ = value
        member.problem = problem
        member.meaning = meaning
        return member

    # Of the machine.
    NOT_BUILT = "not_built", True, "A part of Tessera is not there."
    NO_DRIVER = "no_driver", True, "There is no CUDA driver, or it has no GPU that works."
    LIMIT = "limit", True, "The system lacks something that Tessera needs, or allows too little of it."
    DISABLED = "disabled", True, f"`{DISABLE.name}` keeps the library out of programs."
    INTERPOSED = "interposed", True, "Another preloaded library has driver functions or `dlsym` of its own."
    VARIABLE = "variable", False, "A variable of the environment that changes what programs or the driver do."
    NO_CURVE = "no_curve", False, "ZeroMQ is built without CURVE, so that there is no `--transport tcp`."
    SOFTWARE = "software", False, "The GPUs are software: programs of NVIDIA's runtime library end with error 103."
    OLDER_DRIVER = "older_driver", False, "The driver lacks functions of the list; programs do not get them."
    NEWER_DRIVER = "newer_driver", False, "The driver has functions that the list lacks; calls of them are not seen."

    # Of a program.
    NOT_RUN = "not_run", True, "The program could not be run, or its records could not be read."
    OUT_OF_REACH = "out_of_reach", True, "A program that uses a driver, or the command itself, has no library under it."
    NO_CALL = "no_call", True, "No process called the driver through the library."
    UNSEEN = "unseen", True, "The program looked up functions whose calls are not seen."
    LIBRARY = "library", True, "The library met with trouble, which it wrote to its log."
    LOST = "lost", True, "Records found no room: the reader was slow."
    BROKEN = "broken", True, "The records of a process end before it does."
    REFUSED = "refused", True, "Somebody said hello who was not let in."
    OUTLIVED = "outlived", True, "Processes go on after the program and are no longer observed."
    WITHOUT_LIBRARY = "without_library", False, "A process had no library under it; no driver was seen in it."
    EXPORT_TABLES = "export_tables", False, "The program asked for tables of private functions, unseen from there on."


@dataclass(frozen=True)
class Finding:
    """One thing that was found, in a sentence."""

    topic: Topic
    text: str
