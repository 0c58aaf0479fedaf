"""``python -m softgpu.engine.service``: be the compile service, or end at once if this user has one already.

The caller starts it detached, with null as its streams (the log on stderr) and no descriptors but a pipe, on which one
byte says that the service answers; and with ``OPENBLAS_NUM_THREADS=1``, because a process that forks must have one
thread. ``start.py`` and ``runtime/client_start.c`` do so.
"""

from __future__ import annotations

import argparse
import fcntl
import logging
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

IDLE_SECONDS = 60.0
JOB_SECONDS = 600
HANDOVER_SECONDS = 15.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="softgpu.engine.service", description="Compiles PTX for the software GPU.")
    parser.add_argument("--engine", default="", help="version of the engine in the socket's name (default: our own)")
    parser.add_argument("--ready", type=int, default=-1, help="descriptor that gets a byte when the service answers")
    parser.add_argument("--idle", type=float, default=IDLE_SECONDS, help="seconds without requests until it ends")
    parser.add_argument("--limit", type=int, default=JOB_SECONDS, help="seconds until a compilation is stopped")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="compilations at once")
    parser.add_argument("--backend", default="", help="module with compile_ptx and describe instead of the engine")
    return parser.parse_args()


def take_lock(path: Path) -> bool:
    """Hold the lock file until this process ends. False if another service holds it and answers.

    One that has given up its socket is about to end; that is waited for.
    """
    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    end = time.monotonic() + HANDOVER_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.write(descriptor, b"%d\n" % os.getpid())  # for people
            return True
        except OSError:
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(str(path)) == 0 or time.monotonic() > end:
                    return False
        time.sleep(0.02)


def listen(path: Path) -> socket.socket:
    """The service's socket, in place of one that a killed service left behind."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    listener.bind(str(path))
    os.umask(before)
    listener.listen(128)
    return listener


def report_ready(descriptor: int) -> None:
    """Tell who started us that the service answers; nobody need listen any more."""
    if descriptor >= 0:
        with suppress(OSError):
            os.write(descriptor, b"1")
        os.close(descriptor)


def stop(_signal: int, _frame: object) -> None:
    raise SystemExit(0)


def main() -> int:
    options = arguments()
    os.chdir("/")
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, stop)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(process)d %(message)s")

    from softgpu.engine.service.paths import socket_path
    from softgpu.engine.version import engine_version

    path = socket_path(options.engine or engine_version())
    ours = take_lock(path)
    listener = listen(path) if ours else None
    if listener is None:
        report_ready(options.ready)
        return 0
    from softgpu.engine.service.server import Server
    from softgpu.engine.service.worker import load_backend, work

    try:
        body = partial(work, backend=load_backend(options.backend), seconds=options.limit)
        report_ready(options.ready)
        Server(path, listener, body, options.idle, options.workers).serve()
    finally:
        path.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
