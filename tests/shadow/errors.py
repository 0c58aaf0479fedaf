"""What ends a run."""


class ShadowError(Exception):
    """Records that cannot be carried out: they are not supported, or not a program's."""


class Fault(Exception):
    """What happened is wrong: a kernel has failed, a decision cannot be carried out, nothing can go on. It ends up in
    :attr:`tests.shadow.Outcome.faults`."""
