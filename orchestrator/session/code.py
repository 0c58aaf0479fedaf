"""PTX texts by the images they are in, and the access programs of their kernels, made when they are first asked for.

One :class:`Code` serves all sessions, in one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from orchestrator.session.budget import Budget
from orchestrator.session.images import Image, Part, Target, read, target_of
from ptxparse.api import AccessProgram, Module, ProgramCache, PtxError, analyze_kernel, parse
from tessera.packed import PackedImageError
from tessera.reasons import Reason

HELD = 256 << 20
"""Bytes of PTX, as it came, and of access programs that are kept for kernels to come."""
PARSED = 16 << 20
"""Bytes of texts that are kept parsed, which takes about seven times that."""
_PER_PROGRAM, _PER_ITEM = 2000, 1200
"""Bytes of an access program in memory, roughly: for itself, and for each of its items."""


class Declared(NamedTuple):
    """A variable of a text: ``size`` in bytes, 0 where it is open; ``space`` is global or const."""

    size: int
    space: str
    linkage: str


class Facts(NamedTuple):
    """What a text defines: its kernels, and all names, functions' and variables', that it has bodies or memory for."""

    target: Target | None
    kernels: frozenset[str]
    defined: frozenset[str]
    variables: dict[str, Declared]


class Text:
    """One PTX text. ``used`` is called with it whenever it holds more, or is used again."""

    def __init__(self, source: Part, cache: ProgramCache | None, used: Callable[[Text], None]) -> None:
        self._source, self._cache, self._used = source, cache, used
        self._facts: Facts | Reason | None = None
        self._module: Module | None = None
        self._programs: dict[str, AccessProgram] = {}
        self.parsed_bytes = 0
        self.held_bytes = len(source.data)

    def facts(self) -> Facts | Reason:
        """What it defines, or why nobody can know."""
        if self._facts is None:
            module = self._parsed()
            self._facts = module if isinstance(module, Reason) else _facts(module)
        return self._facts

    def program(self, kernel: str) -> AccessProgram | Reason:
        """The access program of a kernel, or why there is none."""
        if kernel not in self._programs:
            facts = self.facts()
            if isinstance(facts, Reason):
                return facts
            if kernel not in facts.kernels:
                return Reason.UNKNOWN_KERNEL
            self._analyse(kernel)
        return self._programs[kernel]

    def forget_parsed(self) -> None:
        self._module = None
        self.parsed_bytes = 0

    def _analyse(self, kernel: str) -> None:
        made = self._kept()
        if all(program.kernel != kernel for program in made):
            module = self._parsed()
            assert isinstance(module, Module), "it was parsed before"
            made = [analyze_kernel(module, entry) for entry in module.entries if entry.name == kernel]
        for program in made:
            self._programs[program.kernel] = program
            items = len(program.nodes) + len(program.accesses) + len(program.work) + len(program.parameters)
            self.held_bytes += _PER_PROGRAM + _PER_ITEM * items
        self._used(self)

    def _kept(self) -> list[AccessProgram]:
        """The programs of the cache, if there is one that can be used."""
        try:
            return self._cache.programs(self._source.text()) if self._cache else []
        except OSError:
            return []

    def _parsed(self) -> Module | Reason:
        if self._module is None:
            try:
                text = self._source.text()
                self._module = parse(text)
            except PackedImageError:
                return Reason.NO_PTX
            except (PtxError, RecursionError):
                return Reason.UNKNOWN_IMAGE
            self.parsed_bytes = len(text)
        self._used(self)
        return self._module


def _facts(module: Module) -> Facts:
    variables: dict[str, Declared] = {}
    defined = {function.name for function in module.functions if function.instructions is not None} | {*module.aliases}
    for variable in module.variables:
        if variable.space in ("global", "const"):
            known = variables.get(variable.name)
            if known is None or known.linkage == "extern":
                variables[variable.name] = Declared(variable.size, variable.space, variable.linkage)
        if variable.linkage != "extern":
            defined.add(variable.name)
    kernels = frozenset([entry.name for entry in module.entries])
    return Facts(target_of(module.targets[0]) if module.targets else None, kernels, frozenset(defined), variables)


class Code:
    """Images by their hashes. With ``cache`` all kernels of a text are analysed, and kept on disk, when one of them is
    asked for; without it that kernel alone."""

    def __init__(self, cache: ProgramCache | None = None, held: int = HELD, parsed: int = PARSED) -> None:
        self._cache = cache
        self._images: dict[bytes, tuple[Image | None, dict[Part, Text]]] = {}
        self._held: Budget[bytes] = Budget(held, self._forget)
        self._parsed: Budget[Text] = Budget(parsed, Text.forget_parsed)

    def has(self, content: bytes) -> bool:
        return content in self._images

    def add(self, content: bytes, data: bytes) -> None:
        """An image, of which no more than its PTX is kept. ``content`` is the hash of ``data``."""
        if content in self._images:
            return
        image = read(data)
        texts = {} if image is None else {
            part: Text(part, self._cache, lambda text: self._note(content, text)) for part in image.texts
        }
        self._images[content] = image, texts
        self._held.use(content, _held(texts))

    def text(self, content: bytes, capability: int | None) -> Text | Reason | None:
        """The PTX of an image that says what runs on a device, of 10 * major + minor, or None if that is unknown; or
        why nobody can know. None: the image is not here, or no longer."""
        found = self._images.get(content)
        if found is None:
            return None
        image, texts = found
        if image is None:
            return Reason.UNKNOWN_IMAGE
        part = image.chosen(capability)
        return part if isinstance(part, Reason) else texts[part]

    def _note(self, content: bytes, text: Text) -> None:
        if content in self._images:
            self._held.use(content, _held(self._images[content][1]))
            self._parsed.use(text, text.parsed_bytes)

    def _forget(self, content: bytes) -> None:
        for text in self._images.pop(content)[1].values():
            self._parsed.forget(text)


def _held(texts: dict[Part, Text]) -> int:
    """An image takes room even if it has no PTX."""
    return _PER_PROGRAM + sum([text.held_bytes for text in texts.values()])
