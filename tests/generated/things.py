"""What a generated program makes and ends: memory of all kinds, streams, events, modules."""

from __future__ import annotations

from typing import Any

from shim import tails
from shim.wire import Kind, lib
from tests.generated.author import Author
from tests.generated.chooser import Buffer, Chooser
from tests.generated.clocks import Stream
from tests.generated.kernels import KERNELS, VARIABLES, layout, text
from tests.generated.memory import Physical, Window
from tests.generated.operations import Copy, Module, Set, device, mixed, pageable
from tests.generated.records import CONTEXT

SIZES = (256, 301, 512, 768, 1000, 1024, 2049)
NON_BLOCKING = 1


class Things:
    """Each method is one thing that a program does; those that end something end a random one, if there is one."""

    def __init__(self, author: Author, chooser: Chooser) -> None:
        self.author, self.chooser, self.rng = author, chooser, author.rng
        reuse = "reuse" in author.features
        self._device, self._pool = Window(self.rng, 0x1100_0000_0000, reuse), Window(self.rng, 0x1300_0000_0000, reuse)
        self._host = Window(self.rng, 0x1500_0000_0000, reuse)
        self._images = Window(self.rng, 0x1200_0000_0000, reuse)
        self._ghosts: dict[int, Physical] = {}
        chooser.function, chooser.place = self.function, self.place

    # Memory.

    def allocate(self) -> None:
        self._made("device", self._device, lib.WIRE_ALLOCATED, 0, context=CONTEXT)

    def pin(self) -> None:
        self._made("host", self._host, lib.WIRE_HOST, -1, context=CONTEXT)

    def place(self, size: int) -> int:
        """Device memory of so many bytes, for one purpose only."""
        address = self._device.take(size)
        self.author.map(address, size)
        self.announce(address, size, lib.WIRE_ALLOCATED, 0, context=CONTEXT)
        return address

    def _made(self, kind: str, window: Window, code: int, ordinal: int, **fields: int) -> None:
        size = self.rng.choice(SIZES)
        address = window.take(size)
        self.author.map(address, size)
        self.announce(address, size, code, ordinal, **fields)
        self.ready(Buffer(address, size, kind))

    def announce(self, address: int, size: int, code: int, ordinal: int, **fields: Any) -> None:
        self.author.program.announce((Kind.MEMORY, address), Kind.MEMORY, address=address, bytes=size, kind=code,
                                     device=ordinal, **fields)

    def allocate_pooled(self) -> None:
        """In the order of a stream, whose earlier work may have had the same bytes."""
        author, stream = self.author, self._some_stream()
        size = self.rng.choice(SIZES)
        address = self._pool.take(size)
        ghost = self._ghosts.pop(address, None)
        if ghost is not None:
            author.order(stream, author.everything_of(ghost), work=False)
        author.map(address, size)
        author.program.thread = stream.thread
        self.announce(address, size, lib.WIRE_POOLED, 0, stream=stream.handle, owner=0xB000)
        author.clocks.queue(stream, author.everything(address, size), work=False)
        self.ready(Buffer(address, size, "pooled"))

    def _some_stream(self) -> Stream:
        """Where the order of what is no work is not in doubt."""
        named = [s for s in self.author.streams if not s.legacy]
        return self.rng.choice(named) if named else self.stream()

    def ready(self, buffer: Buffer) -> None:
        """All of it is written once, so that nobody reads what nobody has written."""
        author, rng = self.author, self.rng
        if buffer.kind == "host" or rng.random() < 0.4:
            author.submit(Set(buffer.address, buffer.size, 1, author.number() & 0xFF))
        else:
            data = mixed(buffer.size, author.number())
            author.submit(Copy(device(buffer.address), pageable(), buffer.size, data=data))
        self.chooser.buffers.append(buffer)
        self.attend(buffer)

    def attend(self, *buffers: Buffer) -> None:
        """Often what is new is in focus from then on."""
        if self.rng.random() < 0.4:
            self.chooser.focus = list(buffers)

    def free(self) -> None:
        """At once, which the host may do only when nobody uses it."""
        buffer = self._some("device", "pooled", "host")
        if buffer is None:
            return
        author = self.author
        author.order_host(author.everything(buffer.address, buffer.size))
        if "failures" in author.features and buffer.kind != "pooled" and self.rng.random() < 0.2:
            self._refused_end(buffer)
            return
        kind = {"host": lib.WIRE_HOST}.get(buffer.kind, 0)
        author.program.forget(Kind.MEMORY, buffer.address)
        author.program.record(Kind.END, handle=buffer.address, kind=int(Kind.MEMORY), memory=kind)
        self._gone(buffer)

    def _refused_end(self, buffer: Buffer) -> None:
        program = self.author.program
        with program.together():
            program.outcome(program.record(Kind.END, handle=buffer.address, kind=int(Kind.MEMORY)), result=1)
            program.announce_again(Kind.MEMORY, buffer.address)

    def free_pooled(self) -> None:
        """In the order of a stream."""
        buffer = self._some("pooled")
        if buffer is None:
            return
        author, stream = self.author, self._some_stream()
        what = author.everything(buffer.address, buffer.size)
        author.order(stream, what, work=False)
        author.program.thread = stream.thread
        author.program.forget(Kind.MEMORY, buffer.address)
        author.program.record(Kind.END, handle=buffer.address, kind=int(Kind.MEMORY), stream=stream.handle)
        author.clocks.queue(stream, what, work=False)
        self._gone(buffer)

    def _gone(self, buffer: Buffer) -> None:
        author = self.author
        mapping = author.space.remove(buffer.address)
        self.chooser.buffers.remove(buffer)
        self.unknown(buffer.address, buffer.size)
        window = {"device": self._device, "pooled": self._pool, "host": self._host}[buffer.kind]
        window.give(buffer.address, buffer.size)
        if buffer.kind == "pooled":
            self._ghosts[buffer.address] = mapping.physical

    def unknown(self, address: int, size: int) -> None:
        for table in self.author.tables:
            if table.address < address + size and address < table.address + table.size:
                table.valid = False

    def _some(self, *kinds: str) -> Buffer | None:
        found = [b for b in self.chooser.buffers if b.kind in kinds]
        return self.rng.choice(found) if len(self.chooser.buffers) > 3 and found else None

    # Streams.

    def stream(self) -> Stream:
        author, rng = self.author, self.rng
        blocking, handle = rng.random() < 0.5, author.handle()
        author.program.announce((Kind.STREAM, handle), Kind.STREAM, handle=handle, context=CONTEXT,
                                flags=0 if blocking else NON_BLOCKING)
        return author.clocks.stream(handle, blocking=blocking)

    def destroy_stream(self) -> None:
        """Its work goes on."""
        named = [s for s in self.author.streams if s.handle > 2]
        if len(named) > 2:
            stream = self.rng.choice(named)
            stream.alive = False
            self._end(Kind.STREAM, stream.handle)

    def destroy_event(self) -> None:
        events = self.author.events
        if len(events) > 2:
            event = self.rng.choice(events)
            events.remove(event)
            self._end(Kind.EVENT, event.handle)

    def _end(self, kind: Kind, handle: int) -> None:
        program = self.author.program
        program.forget(kind, handle)
        program.record(Kind.END, handle=handle, kind=int(kind))
        self.author.give_back(handle)

    # Modules.

    def load(self) -> None:
        """The one image once more, with variables of its own."""
        author = self.author
        handle, image = author.handle(), text().encode()
        name = author.program.payload(image)
        author.program.announce((Kind.MODULE, handle), Kind.MODULE, handle=handle, context=CONTEXT,
                                image=lib.WIRE_IMAGE_PTX, bytes=len(image), content=name)
        module = Module(handle, {}, {})
        for variable, (size, _) in VARIABLES.items():
            module.variables[variable] = self._images.take(size)
            author.map(module.variables[variable], size)
        self.chooser.modules.append(module)

    def function(self, module: Module, kernel: str) -> None:
        """Asks for a kernel's handle, if nobody has."""
        if kernel not in module.functions:
            handle = module.functions[kernel] = self.author.handle()
            slots, size = layout(kernel)
            assert kernel in KERNELS
            self.author.program.announce(
                (Kind.FUNCTION, module.handle, handle), Kind.FUNCTION, handle=handle, module=module.handle, known=1,
                parameters=len(slots), parameter_bytes=size, name_bytes=len(kernel),
                tail=tails.function_tail(list(slots.values()), kernel))

    def find_variable(self) -> None:
        """Asks where one is."""
        modules = [m for m in self.chooser.modules if m.alive]
        if not modules:
            return
        module, name = self.rng.choice(modules), self.rng.choice(list(VARIABLES))
        address, size = module.variables[name], VARIABLES[name][0]
        if any(b.address == address for b in self.chooser.buffers):
            return
        self.announce(address, size, lib.WIRE_VARIABLE, 0, context=CONTEXT, owner=module.handle,
                       name_bytes=len(name), tail=name.encode())
        self.chooser.buffers.append(Buffer(address, size, "variable" if name == "state" else "constant", module))
        self.attend(self.chooser.buffers[-1])

    def unload(self) -> None:
        author = self.author
        modules = [m for m in self.chooser.modules if m.alive]
        if len(modules) < 2:
            return
        module = self.rng.choice(modules)
        author.synchronize_context()  # its kernels may run
        author.program.forget(Kind.FUNCTION, module.handle)
        for name, address in module.variables.items():
            author.program.forget(Kind.MEMORY, address)
            author.space.remove(address)
            self.unknown(address, VARIABLES[name][0])
            self._images.give(address, VARIABLES[name][0])
        self.chooser.buffers[:] = [b for b in self.chooser.buffers if b.owner is not module]
        module.alive = False
        self._end(Kind.MODULE, module.handle)
