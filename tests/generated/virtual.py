"""Addresses and physical memory apart: pages mapped, also twice, moved and exchanged."""

from __future__ import annotations

from dataclasses import dataclass, field

from shim.wire import Kind, lib
from tests.generated.chooser import PAGE, Buffer
from tests.generated.memory import Physical, Window
from tests.generated.operations import Launch
from tests.generated.things import Things

Page = tuple[int, Physical]
"""Handle, and what it stands for."""


@dataclass(eq=False)
class Reservation:
    """Addresses, page by page: what is mapped there."""

    address: int
    pages: list[Page | None]
    buffers: list[Buffer] = field(default_factory=list)


class Virtual:
    """Each method is one thing that a program does."""

    def __init__(self, things: Things) -> None:
        self.things, self.author, self.chooser, self.rng = things, things.author, things.chooser, things.rng
        self._window = Window(self.rng, 0x1400_0000_0000, "reuse" in self.author.features)
        self.reservations: list[Reservation] = []
        self._known: list[Page] = []

    def reserve(self) -> None:
        pages = self.rng.choice([2, 3, 4])
        address = self._window.take(pages * PAGE, PAGE)
        self.author.program.announce((Kind.RESERVATION, address), Kind.RESERVATION, address=address, bytes=pages * PAGE)
        self.reservations.append(Reservation(address, [None] * pages))
        self.map_page()
        self.map_page()

    def map_page(self) -> None:
        """New memory, or such as was mapped before, or is mapped at another address too."""
        holes = [(r, k) for r in self.reservations for k, page in enumerate(r.pages) if page is None]
        if holes:
            old = self._known if "aliases" in self.author.features else []
            self._map(*self.rng.choice(holes), self.rng.choice(old) if old and self.rng.random() < 0.4 else None)

    def _map(self, place: Reservation, k: int, page: Page | None) -> None:
        author, address, new = self.author, place.address + k * PAGE, page is None
        if page is None:
            handle = author.handle()
            author.program.announce((Kind.PHYSICAL, handle), Kind.PHYSICAL, handle=handle, bytes=PAGE, type=1,
                                    location_type=1)
            page = (handle, Physical(PAGE))
            self._known.append(page)
        author.map(address, PAGE, page[1])
        place.pages[k] = page
        self.things.announce(address, PAGE, lib.WIRE_MAPPED, 0, owner=page[0])
        author.program.announce((Kind.ACCESS, address), Kind.ACCESS, address=address, bytes=PAGE, location_type=1,
                                flags=3)
        if new:
            self.things.ready(Buffer(address, PAGE, "mapped"))
            self.chooser.buffers.pop()
        self._runs(place)
        self.things.attend(*self._of(page[1]))

    def _of(self, physical: Physical) -> list[Buffer]:
        """The buffers where it is mapped."""
        places = [r for r in self.reservations if any(page and page[1] is physical for page in r.pages)]
        return [buffer for place in places for buffer in place.buffers]

    def unmap_page(self) -> None:
        full = [(r, k) for r in self.reservations for k, page in enumerate(r.pages) if page]
        if len(full) > 1:
            place, k = self.rng.choice(full)
            page = self._unmap(place, k)
            if self.rng.random() < 0.5 and "aliases" in self.author.features:  # at once at another address
                holes = [(r, j) for r in self.reservations for j, other in enumerate(r.pages) if other is None]
                self._map(*self.rng.choice(holes), page)

    def _unmap(self, place: Reservation, k: int) -> Page:
        author, address = self.author, place.address + k * PAGE
        author.order_host(author.everything(address, PAGE))
        author.program.forget(Kind.MEMORY, address)
        author.program.forget(Kind.ACCESS, address)
        author.program.record(Kind.END, handle=address, kind=int(Kind.MEMORY), memory=lib.WIRE_MAPPED, bytes=PAGE)
        author.space.remove(address)
        self.things.unknown(address, PAGE)
        page, place.pages[k] = place.pages[k], None
        assert page is not None
        self._runs(place)
        return page

    def exchange(self) -> None:
        """An address gets other memory, with other contents, and is used before and after."""
        full = [(r, k, page) for r in self.reservations for k, page in enumerate(r.pages) if page]
        if not full or len(self._known) < 2:
            return
        place, k, page = self.rng.choice(full)
        address = place.address + k * PAGE + 4 * self.rng.randrange(64)
        self._use(address)
        self._unmap(place, k)
        self._map(place, k, self.rng.choice([other for other in self._known if other is not page]))
        self._use(address)
        self.author.submit(self.chooser.download(address, 64), self.author.legacy)

    def use_twice(self) -> None:
        """Memory that is mapped twice is used at both addresses."""
        places: dict[int, list[tuple[Reservation, int]]] = {}
        for r in self.reservations:
            for k, page in enumerate(r.pages):
                if page:
                    places.setdefault(page[0], []).append((r, k))
        double = [found for found in places.values() if len(found) > 1]
        if not double:
            return
        offset, (one, *others) = 4 * self.rng.randrange(64), self.rng.choice(double)
        for _ in range(4):
            place, k = self.rng.choice([one, *others])
            self._use(place.address + k * PAGE + offset)
        if self.rng.random() < 0.5:
            for place, k in others:
                self._unmap(place, k)
            self._use(one[0].address + one[1] * PAGE + offset)
        self.author.submit(self.chooser.download(one[0].address + one[1] * PAGE + offset, 64), self.author.legacy)

    def _use(self, address: int) -> None:
        """A kernel reads what is there, and writes it, some times."""
        modules = [module for module in self.chooser.modules if module.alive]
        module, kernel = self.rng.choice(modules), "inplace"
        self.things.function(module, kernel)
        for _ in range(self.rng.randrange(1, 4)):
            values = {"out": address, "n": self.rng.choice([5, 16]), "salt": self.author.number()}
            self.author.submit(Launch(module, kernel, values))

    def _runs(self, place: Reservation) -> None:
        """Pages side by side are one buffer."""
        for buffer in place.buffers:
            self.chooser.buffers.remove(buffer)
        place.buffers = []
        for k, page in enumerate(place.pages):
            if page is None:
                continue
            if k and place.pages[k - 1] and place.buffers:
                place.buffers[-1].size += PAGE
            else:
                place.buffers.append(Buffer(place.address + k * PAGE, PAGE, "mapped"))
        self.chooser.buffers.extend(place.buffers)
