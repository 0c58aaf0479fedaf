"""``tessera ptx`` for people: per kernel what it reads and writes, in words and, for a launch, in bytes."""

from __future__ import annotations

from rich.console import ConsoleRenderable, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ptxparse.model import Module
from ptxparse.program import AccessProgram
from tessera.cli.examination import FileFindings, KernelFindings
from tessera.cli.reporters import output, ptx_launch, ptx_words
from tessera.reasons import Reason


def write(files: list[FileFindings]) -> None:
    """All files to standard output."""
    parts: list[ConsoleRenderable] = []
    for file in files:
        if file.module is not None:
            parts += [Text(), file_part(file, file.module)] if parts else [file_part(file, file.module)]
    output.show(parts)


def file_part(file: FileFindings, module: Module) -> ConsoleRenderable:
    """One file: a heading, what the parser noted, the kernels."""
    notes = [Text(f"  note: {note.kind}: {note.text} (line {note.line})", "dim") for note in module.notes]
    return Group(heading(file.path, module), *notes, *(kernel_part(kernel) for kernel in file.kernels))


def heading(path: str, module: Module) -> Text:
    version = ".".join(map(str, module.version))
    count = len(module.entries)
    kernels = "1 kernel" if count == 1 else f"{count} kernels"
    return Text.assemble((path, "bold"), f": PTX {version} for {', '.join(module.targets)}, {kernels}")


def kernel_part(kernel: KernelFindings) -> ConsoleRenderable:
    """One kernel, set in under its name."""
    program = kernel.program
    lines: list[ConsoleRenderable] = [*opaque_lines(program)]
    rows = ptx_words.rows(program)
    lines.append(access_table(rows) if rows else Text("touches no global memory that is known"))
    lines += [Text(sentence, "dim") for sentence in ptx_words.loops(program)]
    lines.append(Text(ptx_words.properties(program)))
    lines += [Text(sentence, "yellow") for sentence in ptx_words.pins(program)]
    lines += [Text(sentence) for sentence in ptx_words.counts(program)]
    if kernel.launch is not None:
        lines += ptx_launch.lines(kernel.launch, program)
    name = Text.assemble("\n", (program.kernel, "bold cyan"), f" (line {program.line})")
    return Group(name, Padding(Group(*lines), (0, 0, 0, 2)))


def opaque_lines(program: AccessProgram) -> list[Text]:
    """Why nothing bounded can be said of the kernel; every reason with the lines it was found at."""
    if program.opaque is None:
        return []
    lines: dict[Reason, list[int]] = {}
    for reason, line in program.problems or ((program.opaque, program.opaque_line),):
        lines.setdefault(reason, []).append(line)
    return [
        Text.assemble(("opaque", "bold red"), f" ({reason.value}, {ptx_words.line_list(found)}): {reason.meaning}")
        for reason, found in lines.items()
    ]


def access_table(rows: list[ptx_words.Row]) -> Table:
    """What is accessed how: kind, base, where; one row for accesses of one kind through one base."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(style="green", overflow="fold")
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(row.kind, Text(row.base), Text(row.lines), Text("\n".join(row.where)))
    return table
