"""Does a report come out again: what `policysim reproduce` asks and says."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from policysim.question import EXIT_CHECK
from policysim.question.answer import Answer
from policysim.question.protocol import Progress, Question
from policysim.question.screen_lines import wrap
from policysim.report.differences import CellDifference
from policysim.report.reproduction import Ask, Reproduction, reproduce, short

MOST_SHOWN = 20


@dataclass(frozen=True)
class ReproduceQuestion(Question):
    """Make a report again.

    Attributes
    ----------
    manifest : Path
        A manifest.json beside its report.
    ask : callable
        Understands a command line.
    """

    manifest: Path
    ask: Ask
    unit: ClassVar[str] = "step"

    @property
    def name(self) -> str:
        """The report's."""
        return self.manifest.parent.name

    def answer(self, progress: Progress) -> Answer:
        """Run it again and compare; exit code 4 if anything but the bytes of a page or figure does not agree."""
        found = reproduce(self.manifest, self.ask, progress)
        return Answer(
            screen=reproduction_screen(found),
            document=reproduction_document(found),
            exit_code=0 if found.agrees else EXIT_CHECK,
        )


def reproduction_screen(found: Reproduction) -> list[str]:
    """The command that was run again, and what agrees."""
    lines = [f"Run again: {shlex.join(['policysim', *found.manifest.command])}"]
    numbers, files = sum(found.n_numbers.values()), list(found.n_numbers)
    if found.differences:
        lines += [f"{_count(len(found.differences), 'difference')} in {numbers:,} numbers:"]
        lines += [f"  {difference_words(difference)}" for difference in found.differences[:MOST_SHOWN]]
        if len(found.differences) > MOST_SHOWN:
            lines += [f"  and {len(found.differences) - MOST_SHOWN:,} more"]
    else:
        lines += wrap(f"All {numbers:,} numbers in {_count(len(files), 'file')} agree: {', '.join(files)}.")
    if found.statements:
        lines.append("The manifest does not say what the run does:")
        lines += [f"  {statement.key}: {statement.old}; now {statement.new}" for statement in found.statements]
    for name in found.missing:
        lines += wrap(f"{name} is missing: the manifest says that the run made it.")
    for name in found.edited:
        lines += wrap(f"{name} is not the file that the manifest describes: it was changed after that run.")
    if found.same_bytes:
        lines.append(f"The same: {_page_and_figures(found.same_bytes)}.")
    if found.other_bytes:
        lines += wrap(f"Not the same: {', '.join(found.other_bytes)}.")
    if found.inputs:
        changes = ", ".join(
            f"{name} {short(then)} then, {short(now)} now" for name, (then, now) in found.inputs.items()
        )
        reason = ", a possible reason" if found.differences or found.statements or found.other_bytes else ""
        lines += wrap(f"Not as it was{reason}: {changes}.")
    return lines


def difference_words(difference: CellDifference) -> str:
    """One difference in one line."""
    if difference.row == 0:
        return f"{difference.file}: {difference.column}: {difference.old}; now {difference.new}"
    key = ", ".join(f"{column} {text}" for column, text in difference.key.items())
    place = f"{difference.file}, row {difference.row}{f' ({key})' if key else ''}"
    return f"{place}: {difference.column} {difference.old or '–'}; now {difference.new or '–'}"


def reproduction_document(found: Reproduction) -> dict[str, Any]:
    """The same for --json, with all differences."""
    return {
        "manifest": found.manifest.path.as_posix(),
        "command": list(found.manifest.command),
        "agree": found.agrees,
        "numbers": found.n_numbers,
        "differences": [asdict(difference) for difference in found.differences],
        "manifest_differences": [asdict(statement) for statement in found.statements],
        "edited": list(found.edited),
        "missing": list(found.missing),
        "same_bytes": list(found.same_bytes),
        "other_bytes": list(found.other_bytes),
        "inputs": {name: {"then": then, "now": now} for name, (then, now) in found.inputs.items()},
    }


def _page_and_figures(names: tuple[str, ...]) -> str:
    pages = [name for name in names if name.endswith(".html")]
    figures = len(names) - len(pages)
    return " and ".join([*pages, *([_count(figures, "figure file")] if figures else [])])


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
