"""Compiled kernels of a test session go to a folder of the session, and are shared by its tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from softgpu.engine import cache, compiler
from softgpu.engine.target import TARGETS, Target, host_target
from tessera.environment import CACHE


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Sets the cache's folder; tests that need one of their own set it again."""
    folder = tmp_path_factory.mktemp("softgpu-cache")
    folder.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE.name, str(folder))
        yield


@pytest.fixture(params=sorted({host_target(), TARGETS[-1]}, key=TARGETS.index), ids=lambda target: target.name)
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Target:
    """Kernels of the test are compiled for this machine as it is, and as one without AVX-512."""
    target: Target = request.param
    for module in (cache, compiler):
        monkeypatch.setattr(module, "host_target", lambda: target)
    return target
