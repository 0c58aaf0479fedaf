"""What every test gets: ``--long``, the marker and the fixture that go with it, profiles for property tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from tessera.environment import STRICT

os.environ.setdefault(STRICT.name, "1")  # what tests start is to depend on nothing that real drivers do not promise

pytest.register_assert_rewrite("tests.device")

SLOW_MACHINES = [HealthCheck.too_slow, HealthCheck.data_too_large]

# The default profile is derandomised: the same commit gives the same result on every machine. The long one searches.
settings.register_profile(
    "default", deadline=None, derandomize=True, database=None, max_examples=100, suppress_health_check=SLOW_MACHINES
)
settings.register_profile(
    "long", deadline=None, max_examples=1000, print_blob=True, suppress_health_check=SLOW_MACHINES
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the full counts")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("long" if config.getoption("--long") else "default")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="full counts: runs with --long"))


@pytest.fixture(scope="session")
def long_run(request: pytest.FixtureRequest) -> bool:
    """Whether this run is to do the full counts."""
    return bool(request.config.getoption("--long"))
