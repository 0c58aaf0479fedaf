"""This tier has its own compiled kernels and compile service."""

from tests.folders import own_folders  # noqa: F401 - a fixture
