"""``softgpu-ptxas``: stands in for ``ptxas`` where the driver is the software one, which takes PTX as it is.

Triton runs it for every kernel when ``TRITON_PTXAS_PATH`` names it (``TRITON_PTXAS_BLACKWELL_PATH`` for cards from
9.0 on): it parses its input and copies it to its output. Options that say how code is to be made have no effect; one
that asks for something else, or that is not known, is an error. Errors go to standard error, with ptxas's exit code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tessera.errors import TesseraError, UsageError

VERSION = """softgpu-ptxas: checks PTX and hands it on, in place of
Cuda compilation tools, release 13.0, V13.0.0
"""
FAILED = 255
"""What ptxas returns for every error; Triton then says that its own PTX is wrong."""

VALUES = {
    "gpu-name": "arch", "output-file": "o", "opt-level": "O", "Ofast-compile": "Ofc", "maxrregcount": "", "fmad": "",
    "regAllocOptLevel": "", "register-usage-level": "regUsageLevel", "allow-expensive-optimizations": "",
    "def-load-cache": "dlcm", "def-store-cache": "dscm", "force-load-cache": "flcm", "force-store-cache": "fscm",
    "split-compile": "", "maxntid": "", "minnctapersm": "", "device-function-maxrregcount": "func-maxrregcount",
}  # fmt: skip
"""Options with a value, and their short names where these differ."""
FLAGS = {
    "generate-line-info": "lineinfo", "suppress-debug-info": "", "device-debug": "g", "verbose": "v", "version": "V",
    "help": "h", "disable-warnings": "w", "warning-as-error": "Werror", "warn-on-spills": "warn-spills",
    "warn-on-local-memory-usage": "warn-lmem-usage", "warn-on-double-precision-use": "warn-double-usage",
    "suppress-stack-size-warning": "", "suppress-double-demote-warning": "", "dont-merge-basicblocks": "no-bb-merge",
    "suppress-async-bulk-multicast-advisory-warning": "", "return-at-end": "ret-end", "override-directive-values": "",
    "disable-optimizer-constants": "disable-optimizer-consts", "make-errors-visible-at-exit": "",
    "compiler-annotations": "annotate",
}  # fmt: skip
_NAMES = {name: long for table in (VALUES, FLAGS) for long, short in table.items() for name in (long, short) if name}
_LEVEL = re.compile(r"-O(\d)")
_ARCHITECTURE = re.compile(r"sm_(\d+)([af]?)")


@dataclass
class Wanted:
    """What a command line asks for."""

    options: dict[str, str]
    files: list[str]


def wanted(arguments: Sequence[str]) -> Wanted:
    """Options as ptxas takes them: one or two dashes, the value behind an equals sign or in the next word, or as in
    ``-O3``. Raises :class:`~tessera.errors.UsageError`."""
    found = Wanted({}, [])
    words = iter(arguments)
    for word in words:
        if not word.startswith("-") or word == "-":
            found.files.append(word)
            continue
        name, equals, value = _LEVEL.sub(r"-O=\1", word).lstrip("-").partition("=")
        option = _NAMES.get(name)
        if option is None:
            raise UsageError(f"option {word!r} is not known to this stand-in for ptxas, which hands PTX on as it is")
        found.options[option] = _value(option, word, equals, value, words)
    return found


def _value(option: str, word: str, equals: str, value: str, words: Iterator[str]) -> str:
    if option in FLAGS:
        if equals:
            raise UsageError(f"option {word!r} takes no value")
        return ""
    value = value if equals else next(words, "")
    if not value:
        raise UsageError(f"option {word!r} needs a value")
    return value


def check_target(targets: Sequence[str], name: str) -> None:
    """Raise unless code for a module's targets may be made for an architecture: one without a letter becomes code for
    all that are not older, one with ``f`` for those of its family, one with ``a`` for itself alone (``ptxas --help`` of
    CUDA 13.0)."""
    architecture = _ARCHITECTURE.fullmatch(name)
    if architecture is None:
        raise UsageError(f"gpu-name {name!r} is no architecture as in sm_80")
    for target in targets:
        found = _ARCHITECTURE.fullmatch(target)
        if found is None:  # texmode_independent, debug
            continue
        ours, theirs = int(architecture[1]), int(found[1])
        older = theirs <= ours and (found[2] != "f" or theirs // 10 == ours // 10)
        if not (target == name if found[2] == "a" else older):
            raise UsageError(f"the module is for {target}, which cannot become code for {name}")


def assemble(options: dict[str, str], source: Path) -> str:
    """Check a module and copy it; what it is, in a line."""
    from ptxparse.parser import parse

    content = source.read_bytes()
    module = parse(content.decode(errors="replace").rstrip("\0"), str(source))
    if "gpu-name" in options:
        check_target(module.targets, options["gpu-name"])
    Path(options.get("output-file", "elf.o")).write_bytes(content)
    return f"kernels handed on as PTX: {', '.join(entry.name for entry in module.entries) or 'none'}"


def run(arguments: Sequence[str]) -> None:
    """Do what a command line says. Raises :class:`~tessera.errors.TesseraError` and ``OSError``."""
    asked = wanted(arguments)
    if "version" in asked.options or "help" in asked.options:
        print(VERSION if "version" in asked.options else __doc__, end="")
        return
    if len(asked.files) != 1:
        raise UsageError(f"there must be one PTX file, not {len(asked.files)}")
    said = assemble(asked.options, Path(asked.files[0]))
    if "verbose" in asked.options:
        print(f"softgpu-ptxas info    : {said}", file=sys.stderr)


def main() -> int:
    """The command; its exit code."""
    try:
        run(sys.argv[1:])
    except TesseraError as error:
        print(f"softgpu-ptxas fatal   : {error}", file=sys.stderr)
        return FAILED
    except OSError as error:
        print(f"softgpu-ptxas fatal   : {error.filename}: {error.strerror}", file=sys.stderr)
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
