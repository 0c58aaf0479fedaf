"""All that ``tessera doctor`` finds out, in one object."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tessera.cli.doctor import drivers, installation, machine
from tessera.cli.doctor.drivers import Driver
from tessera.cli.doctor.findings import Finding, Topic
from tessera.cli.doctor.installation import Installation
from tessera.cli.doctor.machine import Limit, Variable
from tessera.cli.doctor.observation import Observation, observe
from tessera.cli.under_shim import Wanted
from tessera.errors import ExitCode


@dataclass(frozen=True)
class Report:
    """``driver``: None where nothing says which it would be. ``program``: None without a command, or if something is
    missing that every program needs."""

    installation: Installation
    driver: Driver | None
    limits: tuple[Limit, ...]
    variables: tuple[Variable, ...]
    program: Observation | None
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> ExitCode:
        topics = {finding.topic for finding in self.findings}
        if Topic.NO_DRIVER in topics:
            return ExitCode.NO_DRIVER
        return ExitCode.FINDING if any(topic.problem for topic in topics) else ExitCode.OK


def examine(command: tuple[str, ...], fleet: str | None, driver: Path | None) -> Report:
    """Look at everything, then run the command if there is one. Raises :class:`tessera.errors.TesseraError` for options
    that do not fit, and for a fleet that cannot be."""
    findings: list[Finding] = []
    chosen, target = drivers.look(fleet, driver, findings)
    installed = installation.look(findings)
    limits = machine.limits(findings)
    variables = machine.variables(os.environ, findings)
    able = target is not None and not any(finding.topic is Topic.NOT_BUILT for finding in findings)
    program = observe(Wanted(command, fleet, driver), findings) if command and able else None
    if command and not able:
        findings.append(Finding(Topic.NOT_RUN, "the program was not run: first see to what is said above"))
    ordered = sorted(findings, key=lambda finding: not finding.topic.problem)
    return Report(installed, chosen, limits, variables, program, tuple(ordered))
