"""The modules and kernels of one program, from its records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from orchestrator.session import linking
from orchestrator.session.code import Code, Facts, Text
from orchestrator.session.linking import Links
from orchestrator.session.operations import Kernel
from orchestrator.session.payloads import Payloads
from ptxparse.api import AccessProgram
from shim import tails
from shim.layout import lib
from shim.wire import Kind, Record
from tessera.reasons import Reason

MOST_WANTED = 4096
"""How many images are waited for."""


class VariableInfo(NamedTuple):
    """A variable of module ``module``: ``size`` in bytes, 0 where nobody says; ``space`` is global or const;
    ``linkage`` as in PTX, empty for a variable that other texts cannot name."""

    size: int
    space: str
    linkage: str
    module: int


class _Function(NamedTuple):
    """``parameter_bytes``: as the driver says, None if it does not. ``kernel``: it is a CUkernel."""

    name: str
    module: int
    kernel: bool
    parameter_bytes: int | None


class _Said(NamedTuple):
    """What records say of a module or library, ``content`` empty if its image could not be read."""

    context: int
    library: bool
    kind: int
    content: bytes
    of: int


@dataclass
class _Loaded:
    """A module, or a library. ``instances`` are those of a library in its contexts."""

    number: int
    said: _Said
    kernels: dict[tuple[str, int | None], Kernel] = field(default_factory=dict)
    instances: dict[int, _Loaded] = field(default_factory=dict)


class Modules:
    """Give it every record of the kinds that :meth:`take` names, and ask it what handles mean at that moment.

    Modules are numbered from 0. A library has a number of its own, and one for each context in which it is used."""

    def __init__(self, code: Code, payloads: Payloads) -> None:
        self._code, self._payloads = code, payloads
        self._capabilities: dict[int, int] = {}
        self._devices: dict[int, int] = {}
        self._next = 0
        self._numbers: dict[int, _Loaded] = {}
        self._modules: dict[int, _Loaded] = {}
        self._doubted: dict[int, _Loaded] = {}
        self._functions: dict[int, _Function] = {}
        self._functions_of: dict[int, set[int]] = {}
        self._links = Links()
        self._wanted: set[bytes] = set()

    def take(self, record: Record) -> tuple[int, ...]:
        """A record of EPOCH, DATA, DEVICE, CONTEXT, MODULE, FUNCTION, LINK_INPUT, LINK_OUTPUT or END; others are none
        of its business. The numbers of the modules that end with it. Contents go on to the payloads: nobody else needs
        to hand them these."""
        body = record.body
        match record.kind:
            case Kind.DATA:
                whole = self._payloads.take(record)
                if whole in self._wanted:
                    self._want(whole)
            case Kind.DEVICE:
                self._capabilities[body.ordinal] = body.capability
            case Kind.CONTEXT:
                self._devices[body.handle] = body.device
            case Kind.MODULE:
                return self._announce(record)
            case Kind.FUNCTION:
                self._forget_function(body.handle)
                known = body.parameter_bytes if body.known else None
                self._functions[body.handle] = _Function(tails.name(record), body.module, bool(body.kernel), known)
                self._functions_of.setdefault(body.module, set()).add(body.handle)
            case Kind.LINK_INPUT:
                self._want(self._links.input(record) or b"")
            case Kind.LINK_OUTPUT:
                self._links.output(record)
            case Kind.END if not record.flags & lib.WIRE_CAPTURED:
                return self._end(body.kind, body.handle)
            case Kind.EPOCH:
                return self._doubt()
        return ()

    def kernel(self, handle: int, context: int = 0) -> Kernel:
        """What a function or a kernel is that is launched in a context; without a program it says why. The same object
        as long as nothing more becomes known of it."""
        function = self._functions.get(handle)
        if function is None:
            return Kernel("", -1, b"", None, Reason.UNKNOWN_KERNEL)
        loaded = self._find(function.module, context)
        if loaded is None:
            return Kernel(function.name, -1, b"", None, Reason.UNKNOWN_KERNEL, function.parameter_bytes or 0)
        key = function.name, function.parameter_bytes
        found = loaded.kernels.get(key)
        if found is None or found.reason is Reason.UNKNOWN_IMAGE:  # which may have come meanwhile
            made = self._made(loaded, function)
            if found is None or made.reason is not found.reason:
                found = loaded.kernels[key] = made
        return found

    def name(self, handle: int) -> str:
        """That of a function or a kernel; empty if no record has announced it."""
        function = self._functions.get(handle)
        return function.name if function else ""

    def module(self, handle: int, context: int = 0) -> int | None:
        """The number that a module has, or a library in a context; None if no record has announced it."""
        loaded = self._find(handle, context)
        return None if loaded is None else loaded.number

    def variables(self, module: int) -> dict[str, VariableInfo]:
        """The variables of a module by name, as far as its PTX says."""
        loaded = self._numbers.get(module)
        texts = self._texts(loaded) if loaded else ()
        found = {} if isinstance(texts, Reason) else linking.variables(texts)
        return {name: VariableInfo(*declared, module) for name, declared in found.items()}

    def runs_on(self, module: int, capability: int) -> bool:
        """Whether a GPU, of 10 * major + minor, can compile the PTX that describes the kernels of a module."""
        loaded = self._numbers.get(module)
        texts = self._texts(loaded) if loaded else ()
        facts = [] if isinstance(texts, Reason) else [text.facts() for text in texts]
        return bool(facts) and all(
            isinstance(one, Facts) and one.target is not None and one.target.fits(capability) for one in facts
        )

    def _announce(self, record: Record) -> tuple[int, ...]:
        body = record.body
        said = _Said(body.context, bool(body.library), body.image, body.content if body.bytes else b"", body.of)
        library = self._modules.get(said.of)
        if library is not None and not library.said.library:
            library = None
        if library is not None:
            said = said._replace(library=False, kind=library.said.kind, content=library.said.content)
        known = self._modules.get(body.handle)
        if known is None and (known := self._doubted.pop(body.handle, None)):
            self._modules[body.handle] = known
        if known is not None and known.said == said and record.flags & lib.WIRE_RESTATED:
            return ()
        ended = self._end(Kind.MODULE, body.handle) if known else ()
        loaded = self._number(said) if library is None else self._instance(library, said.context)
        loaded.said = said
        self._modules[body.handle] = loaded
        self._want(said.content)
        return ended

    def _number(self, said: _Said) -> _Loaded:
        loaded = self._numbers[self._next] = _Loaded(self._next, said)
        self._next += 1
        return loaded

    def _instance(self, library: _Loaded, context: int) -> _Loaded:
        """A library in a context, whether or not the program has asked for it as a module."""
        found = library.instances.get(context)
        if found is None:
            found = library.instances[context] = self._number(library.said._replace(context=context, library=False))
        return found

    def _find(self, handle: int, context: int) -> _Loaded | None:
        loaded = self._modules.get(handle)
        if loaded is None or loaded.number not in self._numbers:  # it may have had two handles, one of which ended
            return None
        return self._instance(loaded, context) if loaded.said.library else loaded

    def _doubt(self) -> tuple[int, ...]:
        """Records were lost: what is there is said again, and what is not said until the next time is gone."""
        gone = self._gone(self._doubted.values())
        self._doubted, self._modules = self._modules, {}
        self._functions.clear()
        self._functions_of.clear()
        self._links.doubt()
        return gone

    def _end(self, kind: int, handle: int) -> tuple[int, ...]:
        if kind == Kind.LINK_INPUT:
            self._links.end(handle)
        if kind == Kind.MODULE:
            ending = self._modules.get(handle)
            parts = []
            if ending is not None and ending.said.library:
                parts = [key for key, loaded in self._modules.items() if loaded.said.of == handle]
            return self._end_modules([*parts, handle])
        if kind == Kind.CONTEXT and handle:
            self._devices.pop(handle, None)
            for key, function in [*self._functions.items()]:
                if not function.kernel and function.module not in self._modules:
                    self._forget_function(key)
            found = [loaded.instances.pop(handle, None) for loaded in self._modules.values()]
            ended = self._end_modules([key for key, loaded in self._modules.items() if loaded.said.context == handle])
            return tuple(sorted({*ended, *self._gone([loaded for loaded in found if loaded is not None])}))
        return ()

    def _end_modules(self, handles: Iterable[int]) -> tuple[int, ...]:
        """Modules end, and their functions."""
        gone = []
        for handle in handles:
            for function in [*self._functions_of.get(handle, ())]:
                self._forget_function(function)
            loaded = self._modules.pop(handle, None)
            if loaded is not None:
                gone.append(loaded)
                library = self._modules.get(loaded.said.of)
                if library is not None and library.instances.get(loaded.said.context) is loaded:
                    del library.instances[loaded.said.context]
        return self._gone(gone)

    def _gone(self, modules: Iterable[_Loaded]) -> tuple[int, ...]:
        """Those of modules whose numbers end only now."""
        every = [one for loaded in modules for one in (loaded, *loaded.instances.values())]
        return tuple(sorted({one.number for one in every if self._numbers.pop(one.number, None)}))

    def _forget_function(self, handle: int) -> None:
        function = self._functions.pop(handle, None)
        if function is not None:
            others = self._functions_of[function.module]
            others.discard(handle)
            if not others:
                del self._functions_of[function.module]

    def _made(self, loaded: _Loaded, function: _Function) -> Kernel:
        texts = self._texts(loaded)
        found = texts if isinstance(texts, Reason) else linking.program(texts, function.name)
        told = function.parameter_bytes
        if isinstance(found, AccessProgram) and told is not None and told != found.parameter_bytes:
            found = Reason.NO_PTX
        image = loaded.said.content
        if isinstance(found, Reason):
            return Kernel(function.name, loaded.number, image, None, found, told or 0)
        return Kernel(function.name, loaded.number, image, found, None, found.parameter_bytes)

    def _texts(self, loaded: _Loaded) -> tuple[Text, ...] | Reason:
        """The PTX of which a module is made, or why nobody can know."""
        said = loaded.said
        images = self._links.made_of(said.content) if said.kind == lib.WIRE_IMAGE_CUBIN else None
        if isinstance(images, Reason):
            return images
        texts = []
        for content in images or (said.content,):
            text = self._text(content, said.context)
            if isinstance(text, Reason):
                return text
            texts.append(text)
        return tuple(texts)

    def _text(self, content: bytes, context: int) -> Text | Reason:
        self._want(content)
        return self._code.text(content, self._capability(context)) or Reason.UNKNOWN_IMAGE

    def _capability(self, context: int) -> int | None:
        """That of a context's device; of an unknown context that which all devices have, if there is one."""
        found = self._capabilities.get(self._devices.get(context, -1))
        if found is not None or context in self._devices:
            return found
        every = {*self._capabilities.values()}
        return every.pop() if len(every) == 1 else None

    def _want(self, content: bytes) -> None:
        """An image goes from the payloads to the code; if it is not there yet, as soon as it comes."""
        if not content:
            return
        if not self._code.has(content):
            data = self._payloads.get(content)
            if data is None:
                if len(self._wanted) < MOST_WANTED:
                    self._wanted.add(content)
                return
            self._code.add(content, data)
        self._wanted.discard(content)
        self._payloads.drop(content)
