#!/usr/bin/env python3
"""The one task entry: ``python3 build.py TASK``. Needs Python 3.11 or newer and nothing else; see ``--help``."""

from __future__ import annotations

import argparse
import sys

EPILOG = """tasks:
  test [TIER...]          make .venv, install locked packages, build, ruff, mypy --strict, the suite
                          (with tier names: install and run only these; --long: full counts)
  bench [NAME [ARG...]]   run one benchmark of benchmarks/, or all (--clients first installs
                          requirements/clients.lock, which the precision and the clients benchmark use)
  build                   compile the libraries; build the wheel under build/wheel
  gpu-kit                 make build/gpu-kit: a folder that checks on a machine with real GPUs, without a
                          network, what is only believed without one
  lock                    write requirements/*.lock anew from pyproject.toml
  clean                   remove what these tasks made
"""


def parser() -> argparse.ArgumentParser:
    """The command line of this file."""
    top = argparse.ArgumentParser(
        prog="build.py", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tasks = top.add_subparsers(dest="task", required=True, metavar="TASK")
    test = tasks.add_parser("test", help="check everything, or run single tiers")
    test.add_argument("tiers", nargs="*", metavar="TIER", help="folder name in a room of tests: nodriver, softgpu, gpu")
    test.add_argument("--long", action="store_true", help="full counts; the whole suite also writes docs/measured")
    test.add_argument("-j", "--jobs", type=positive, metavar="N", help="test processes (default: 2, or the cores)")
    bench = tasks.add_parser("bench", help="run benchmarks")
    bench.add_argument("--clients", action="store_true", help="install the pinned client programs and compilers first")
    bench.add_argument("name", nargs="?", metavar="NAME", help="file stem in benchmarks/")
    bench.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARG", help="passed on to the benchmark")
    tasks.add_parser("build", help="build the wheel")
    kit = tasks.add_parser("gpu-kit", help="make the folder that checks real GPUs")
    kit.add_argument("--python", default="3.11", choices=["3.11", "3.12"], help="of the machine that it is for (3.11)")
    tasks.add_parser("lock", help="write the lock files anew")
    tasks.add_parser("clean", help="remove what was made")
    return top


def positive(text: str) -> int:
    """A number of processes."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def dispatch(options: argparse.Namespace) -> None:
    """Run the chosen task; raises ``tools.steps.StepFailed``."""
    from tools import kit, locks, tasks, tiers

    if options.task == "test":
        tasks.test(options.tiers, options.long, options.jobs or tiers.default_jobs())
    elif options.task == "bench":
        tasks.bench(options.name, options.arguments, options.clients)
    elif options.task == "build":
        tasks.build()
    elif options.task == "gpu-kit":
        kit.build(options.python)
    elif options.task == "lock":
        locks.lock()
    else:
        tasks.clean()


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0: done; 1: a step failed; 2: an unknown task or name."""
    options = parser().parse_args(arguments)
    from tools.steps import StepFailed

    try:
        dispatch(options)
    except StepFailed as failure:
        print(f"build.py: {failure}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        print("build.py: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036 - an older Python should say this, not fail on an import
        sys.exit(f"build.py needs Python 3.11 or newer, and this is {sys.version.split()[0]}: try python3.11 build.py")
    sys.exit(main())
