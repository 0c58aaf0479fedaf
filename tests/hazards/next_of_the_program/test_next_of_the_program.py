"""P16, P17: ``dlsym(RTLD_NEXT)`` under an interposer of ``dlsym`` gives NULL the second time, or begins from the
interposer instead of the library that asks, which then finds itself for ever.

Each library gets the next one behind it, as if nothing stood between."""

from __future__ import annotations

from tests.hazards.conftest import Build
from tests.hazards.kit import run


def test_it_is_found_as_often_as_asked(build: Build) -> None:
    done = run([build("program.c", "-pthread")])
    assert (done.status, done.errors, done.clients) == (0, "", [])


def test_a_library_gets_the_one_behind_it(build: Build) -> None:
    libraries = [build("weak.c", f'-DNAME="{name}"', "-DOPENED", as_=f"lib{name}.so") for name in ("first", "second")]
    program = build("caller.c", "-DOPENED", "-Wl,--no-as-needed", *map(str, libraries))
    done = run([program], given={"LD_BIND_NOW": "1"}, seconds=5)
    assert (done.status, done.output) == (0, "second\n")
