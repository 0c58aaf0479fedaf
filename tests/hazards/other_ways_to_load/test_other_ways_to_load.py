"""Kin of P15 and P17: a part of a program finds the driver in a way that an interposer does not stand in, and then
half of the calls are seen.

What is loaded with ``RTLD_DEEPBIND``, opened by its path, or looked up among all symbols is seen; the one way out is
a name space of its own (``dlmopen``), and code that is bound to itself and opens the driver by its path: it works as
if the library were not there."""

from __future__ import annotations

import pytest

from tests import null_driver
from tests.hazards.conftest import Build
from tests.hazards.kit import run

LINKED, BY_NAME, BY_PATH, GLOBAL, VERSIONED = range(5)
SEEN = [(LINKED, "plain"), (BY_NAME, "plain"), (BY_PATH, "plain"), (GLOBAL, "plain"), (LINKED, "deep"),
        (BY_NAME, "deep"), (GLOBAL, "deep")]
UNSEEN = [(BY_PATH, "deep"), (LINKED, "name space"), (BY_NAME, "name space"), (BY_PATH, "name space")]


@pytest.mark.parametrize(("how", "way"), SEEN + UNSEEN)
def test_a_plugin_finds_the_driver(build: Build, how: int, way: str) -> None:
    flags = [f"-DHOW={how}", *([] if how == LINKED else ["-DOPENED"])]
    plugin = build("plugin.c", *flags, as_="libplugin.so")
    command = [build("program.c", "-DOPENED"), plugin, way, null_driver.build()]
    bare = run(command, preload=())
    done = run(command)
    assert (done.status, done.output, done.errors) == (0, "0\n", "") and bare.output == "0\n"
    assert done.launches() == ((how, way) in SEEN)


def test_versions_of_symbols(build: Build) -> None:
    """Drivers have none: whoever asks for one gets what the loader says."""
    plugin = build("plugin.c", f"-DHOW={VERSIONED}", "-DOPENED", as_="libplugin.so")
    command = [build("program.c", "-DOPENED"), plugin, "plain", null_driver.build()]
    assert run(command).output == run(command, preload=()).output


def test_functions_of_a_second_driver(build: Build) -> None:
    """They are its own, and not mixed up with those of the first."""
    done = run([build("inner.c", "-DOPENED"), null_driver.build()])
    assert (done.status, done.output, done.clients) == (0, "0\n", [])
    assert "calls there are not seen" in done.log
