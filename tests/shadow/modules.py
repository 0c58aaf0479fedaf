"""Modules, libraries and kernels of the program. Each context has its own copy of a module, and each GPU that jobs are
sent to has one for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from shim import tails
from shim.wire import Kind, Record, lib
from tests.shadow.errors import Fault, ShadowError
from tests.shadow.script import Script
from tests.shadow.space import Loaded, Space


@dataclass(eq=False)
class Image:
    """A module or a library. ``text``: its PTX, None if it has none."""

    sequence: int
    handle: int
    context: int
    text: bytes | None
    copies: dict[int, Loaded] = field(default_factory=dict)


class Copy(NamedTuple):
    """An image in a context."""

    image: Image
    context: int


class Function(NamedTuple):
    """A kernel by its name."""

    image: Image
    context: int
    name: str


class Modules:
    """Of one program, whose memory is ``space``. ``places``: where variables ever were."""

    def __init__(self, space: Space, script: Script) -> None:
        self._space, self._script = space, script
        self._images: dict[int, Image] = {}
        self._contexts: dict[int, int] = {}
        self._functions: dict[int, Function] = {}
        self.places: list[tuple[int, int]] = []

    def announce(self, record: Record) -> None:
        """A record of MODULE or FUNCTION."""
        body = record.body
        if record.kind is Kind.FUNCTION:
            image = self._images.get(body.module)
            if image is not None:
                self._functions[body.handle] = Function(image, self._contexts[body.module], tails.name(record))
            return
        again = body.handle in self._images and record.flags & lib.WIRE_RESTATED
        if again:
            return
        image = self._images.get(body.of)
        if image is None:
            text = self._script.contents.get(bytes(body.content)) if body.image == lib.WIRE_IMAGE_PTX else None
            image = Image(record.sequence, body.handle, body.context, bytes(text).rstrip(b"\0") if text else None)
        self._images[body.handle], self._contexts[body.handle] = image, body.context
        if body.context:
            self.home(Copy(image, body.context))

    def end(self, handle: int) -> None:
        """A module or a library is unloaded."""
        image = self._images.pop(handle, None)
        if image is None or image.handle != handle:
            return
        for loaded in image.copies.values():
            for address, _ in loaded.globals.values():
                self._space.remove(address)
        image.copies.clear()

    def end_context(self, context: int) -> None:
        for handle, of in list(self._contexts.items()):
            if of == context and handle in self._images:
                self.end(handle)

    def find(self, handle: int, context: int) -> tuple[Copy, str]:
        """The kernel of a handle when it is launched in a context."""
        found = self._functions.get(handle)
        if found is None:
            raise ShadowError(f"function {handle:#x} is of no known module")
        return Copy(found.image, found.context or context), found.name

    def home(self, copy: Copy) -> Loaded:
        """The program's own copy."""
        found = copy.image.copies.get(copy.context)
        if found is None:
            if copy.image.text is None:
                raise ShadowError(f"the module of record {copy.image.sequence} has no PTX here")
            found = copy.image.copies[copy.context] = self._space.load(copy.image.text)
            self.places += [(address, address + size) for address, size in found.globals.values()]
        return found

    def variable(self, record: Record) -> None:
        """A record of MEMORY that says where a variable is."""
        image = self._images.get(record.body.owner)
        if image is None:
            raise ShadowError(f"record {record.sequence}: a variable of an unknown module")
        context = record.body.context or self._contexts[record.body.owner]
        loaded, name = self.home(Copy(image, context)), tails.name(record)
        if name not in loaded.globals:
            raise ShadowError(f"record {record.sequence}: the module has no variable {name}")
        address, size = loaded.globals[name]
        if size != record.body.bytes:
            raise ShadowError(f"record {record.sequence}: variable {name} has {size} bytes, not {record.body.bytes}")
        if address != record.body.address:
            loaded.move(name, record.body.address)
            self.places.append((record.body.address, record.body.address + size))

    def variables(self) -> dict[tuple[int, int, str], bytes]:
        """The bytes of all of them."""
        return {(image.sequence, context, name): self._space.read(address, size)
                for image in dict.fromkeys(self._images.values()) for context, loaded in image.copies.items()
                for name, (address, size) in loaded.globals.items()}


class Sent:
    """Copies of modules on a GPU that jobs are sent to."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._copies: dict[Copy, Loaded] = {}

    def copy(self, of: Copy) -> Loaded:
        found = self._copies.get(of)
        if found is None:
            if of.image.text is None:
                raise Fault(f"the module of record {of.image.sequence} has no PTX here")
            found = self._copies[of] = self._space.load(of.image.text)
        return found

    def all(self) -> list[Loaded]:
        return list(self._copies.values())
