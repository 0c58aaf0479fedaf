"""Programs that the checks run, each in a process of its own: ``python -m tests.device.programs.NAME``."""
