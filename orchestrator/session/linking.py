"""Images that a program made of others: from which, and what several texts together say of kernels and variables."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from orchestrator.session.code import Declared, Facts, Text
from ptxparse.api import AccessProgram
from shim.wire import Record
from tessera.reasons import Reason

MOST = 4096
"""Of how many images it is remembered what they were linked from."""
_PTX, _FATBIN = 1, 2
"""CU_JIT_INPUT_PTX and CU_JIT_INPUT_FATBINARY of CUjitInputType."""


class Links:
    """Links and their inputs by the handles of their states, and what came of them by its hash."""

    def __init__(self) -> None:
        self._inputs: dict[int, list[bytes | None]] = {}
        self._made: OrderedDict[bytes, tuple[bytes | None, ...]] = OrderedDict()

    def input(self, record: Record) -> bytes | None:
        """A record of LINK_INPUT: the hash of the image, None if it is of a kind that never has PTX. An image that
        could not be read has no bytes, and the empty hash."""
        body = record.body
        image: bytes = body.content if body.bytes else b""
        known = image if body.type in (_PTX, _FATBIN) else None
        self._inputs.setdefault(body.state, []).append(known)
        return known

    def output(self, record: Record) -> None:
        """A record of LINK_OUTPUT."""
        body = record.body
        self._made[body.content] = tuple(self._inputs.get(body.state, ()))
        self._made.move_to_end(body.content)
        if len(self._made) > MOST:
            self._made.popitem(last=False)

    def end(self, state: int) -> None:
        """What came of the link may be loaded for as long as the program likes."""
        self._inputs.pop(state, None)

    def doubt(self) -> None:
        """Records were lost: the inputs of links that are there are said again."""
        self._inputs.clear()

    def made_of(self, content: bytes) -> tuple[bytes, ...] | Reason | None:
        """The images from which one was linked; None if it was not linked."""
        found = self._made.get(content)
        if found is None:
            return None
        known = tuple([image for image in found if image is not None])
        return known if found and len(known) == len(found) else Reason.NO_PTX


def program(texts: Sequence[Text], kernel: str) -> AccessProgram | Reason:
    """The access program of a kernel of what was linked from texts, or is one; or why there is none."""
    owners: list[tuple[Text, Facts]] = []
    others: list[Facts] = []
    for text in texts:
        facts = text.facts()
        if isinstance(facts, Reason):
            return facts
        if kernel in facts.kernels:
            owners.append((text, facts))
        else:
            others.append(facts)
    if not owners:
        return Reason.UNKNOWN_KERNEL
    (text, facts), *more = owners
    # Of what several texts define the linker takes one; which, nobody says.
    if more or any(facts.defined & other.defined for other in others):
        return Reason.NO_PTX
    return text.program(kernel)


def variables(texts: Sequence[Text]) -> dict[str, Declared]:
    """The variables of what was linked from texts, or is one, as far as that is known: definitions go before
    declarations."""
    found: dict[str, Declared] = {}
    for text in texts:
        facts = text.facts()
        for name, declared in {} if isinstance(facts, Reason) else facts.variables.items():
            if name not in found or found[name].linkage == "extern":
                found[name] = declared
    return found
