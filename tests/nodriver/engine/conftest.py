"""Compiled kernels of a test session go to a folder of the session, and are shared by its tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tessera.environment import CACHE


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Sets the cache's folder; tests that need one of their own set it again."""
    folder = tmp_path_factory.mktemp("softgpu-cache")
    folder.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE.name, str(folder))
        yield
