"""Does a report come out again: what `policysim reproduce` asks and says."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from envs.toml_reader import one_line
from policysim.output.differences import Disagreement
from policysim.output.reproduction import Ask, Reproduction, reproduce, short
from policysim.question import EXIT_CHECK
from policysim.question.answer import Answer, Page
from policysim.question.formats import several
from policysim.question.protocol import Progress, Question

MOST_SHOWN, MOST_LETTERS = 20, 300


@dataclass(frozen=True)
class ReproduceQuestion(Question):
    """Make a report again.

    Attributes
    ----------
    manifest : Path
        A manifest.json beside its report.
    ask : callable
        Understands the options of a question.
    """

    manifest: Path
    ask: Ask
    unit: ClassVar[str] = "step"

    @property
    def name(self) -> str:
        """The report's."""
        return self.manifest.parent.name

    def answer(self, progress: Progress) -> Answer:
        """Ask again and compare; exit code 4 if anything but the bytes of a page or figure does not agree."""
        found = reproduce(self.manifest, self.ask, progress)
        return Answer(
            screen=Page("reproduction-screen.txt", reproduction_texts(found)),
            document=reproduction_document(found),
            exit_code=EXIT_CHECK if found.differences else 0,
        )


def reproduction_texts(found: Reproduction) -> dict[str, Any]:
    """What was asked again, what differs, and what agrees."""
    options = [f"{name} {_in_words(value)}" for name, value in found.manifest.question.items()]
    differences, more = found.differences, len(found.differences) - MOST_SHOWN
    pages = [name for name in found.same if name.endswith(".html")]
    figures = [several(len(found.same) - len(pages), "figure file")] if len(found.same) > len(pages) else []
    reason = ", a possible reason" if differences else ""
    return {
        "asked": "; ".join([found.manifest.name, *options]),
        "compared": f"{sum(found.n_numbers.values()):,} numbers in {several(len(found.n_numbers), 'file')}",
        "number": [several(len(differences), "difference")] if differences else [],
        "differences": [difference_words(difference) for difference in differences[:MOST_SHOWN]],
        "more": [f"{more:,}"] if more > 0 else [],
        "agreeing": [] if differences else [", ".join(found.n_numbers)],
        "same": [" and ".join([*pages, *figures])] if found.same else [],
        "changed": [reason] if found.remarks else [],
        "remarks": [difference_words(remark) for remark in found.remarks],
    }


def difference_words(difference: Disagreement) -> str:
    """One difference in one line."""
    key = ", ".join(f"{column} {text}" for column, text in difference.key.items())
    row = f", row {difference.row}" if difference.row else ""
    place = f"{difference.file}{row}{f' ({key})' if key else ''}"
    old, new = (short(text[:MOST_LETTERS]) or "–" for text in (difference.old, difference.new))
    return one_line(f"{place}: {difference.column} {old}; now {new}")


def reproduction_document(found: Reproduction) -> dict[str, Any]:
    """The same for --json, with all differences."""
    return {
        "manifest": found.manifest.path.as_posix(),
        "question": found.manifest.question,
        "agree": not found.differences,
        "numbers": found.n_numbers,
        "differences": [asdict(difference) for difference in found.differences],
        "remarks": [asdict(remark) for remark in found.remarks],
        "same": list(found.same),
    }


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in value) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
