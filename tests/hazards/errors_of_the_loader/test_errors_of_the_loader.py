"""Kin of P16: a look-up that succeeds leaves an error behind, and the program takes it for a failure; or there is none
after one that failed.

``dlerror`` says after each look-up what it would say without the library, also when that opens an older driver."""

from __future__ import annotations

from tests import null_driver
from tests.hazards.conftest import Build
from tests.hazards.kit import run


def test_dlerror_is_about_what_was_asked_for(build: Build) -> None:
    program, library = build("program.c", "-DOPENED"), null_driver.build(version=11000)
    bare = run([program], library=library, preload=())
    assert bare.output.startswith("cuInit 1 0\ncuLaunchKernelEx 0 1\n")
    for given in ({}, {"TESSERA_DISABLE": "1"}):
        assert run([program], library=library, given=given).output == bare.output
