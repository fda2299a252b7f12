"""The protocol that every question follows, and how its work tells how much there is to do and how much is done."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Self

from policysim.question.answer import Answer


@dataclass(frozen=True, eq=False)
class Progress:
    """Told by whoever works: first what to expect, then every step.

    Work knows its own size only: it calls `expect` before it begins and `advance` on the way, so that nobody has to
    count the steps of somebody else's work beforehand. A step is whatever takes about as long as others of its kind.

    Attributes
    ----------
    on_advance : callable, optional
        Called with the number of steps that are done; by default nobody listens.
    on_expect : callable, optional
        Called with the number of steps that will be done in addition to all that were expected before.

    Examples
    --------
    >>> progress = Progress(on_advance=print)
    >>> progress.expect(2)
    >>> progress.advance()
    1
    """

    on_advance: Callable[[int], object] | None = None
    on_expect: Callable[[int], object] | None = None

    @classmethod
    def of(cls, advance: Callable[[], object] | Progress) -> Progress:
        """A progress as it is; a function that is called without arguments after each step."""
        return advance if isinstance(advance, Progress) else cls(lambda steps: [advance() for _ in range(steps)])

    def expect(self, steps: int) -> None:
        """So many steps more will be done."""
        if self.on_expect:
            self.on_expect(steps)

    def advance(self, steps: int = 1) -> None:
        """So many steps are done."""
        if self.on_advance:
            self.on_advance(steps)


SILENT = Progress()


# Why a question about one decision, or about something else than days, does not take these.
ONLY_OVER_DAYS = dict.fromkeys(("total_epsilon", "delta", "length_public"), "only goes with --horizon")

# Why a question that reads no log takes none of these.
ONLY_WHERE_COUNTED = dict.fromkeys(("workers", "cluster"), "only goes with a log, which is counted")


class UsageError(Exception):
    """Something that cannot be asked; str() is one line for the user."""


class Question(ABC):
    """Something that can be asked and answered.

    Attributes
    ----------
    refuses : mapping of option to str
        Options of the command line that it does not take, and why; by their names in Python.
    unit : str
        What a step of its progress is, in a word.
    """

    refuses: ClassVar[Mapping[str, str]] = MappingProxyType({})
    unit: ClassVar[str] = "run"

    @property
    def writes(self) -> bool:
        """Whether the answer surely leaves files, so that a folder that cannot be written is found out first."""
        return False

    @property
    @abstractmethod
    def name(self) -> str:
        """Of its folder among the reports."""

    @abstractmethod
    def answer(self, progress: Progress) -> Answer:
        """Compute everything; nothing is printed or written."""


class StudyQuestion(Question):
    """A question about a study whose answer is a report: its manifest asks it again.

    Attributes
    ----------
    study : object
        What it is asked of: has a `name`, and an `identity` for the manifest.
    takes : tuple of str
        The options that change its numbers (`policysim.output.manifest.KEYS`).
    kind : str
        Of its answer.
    """

    study: Any
    takes: ClassVar[tuple[str, ...]]
    kind: ClassVar[str]
    writes = True

    @property
    def name(self) -> str:
        """The study's."""
        return str(self.study.name)

    def with_given(self, given: Sequence[str]) -> Self:
        """The same question, of which only these options were asked for in place of the study's."""
        return self

    @classmethod
    @abstractmethod
    def of(cls, study: Any, options: Mapping[str, Any]) -> Self:
        """The question of a study and of options among `takes`; without one, the study's own value counts.

        Raises
        ------
        ValueError
            For a value that the study cannot have.
        """


def refuse(kind: type[Question], options: Mapping[str, object], study: str = "") -> None:
    """Refuse the first option that a kind of question does not take.

    Parameters
    ----------
    kind : type
        A question's class.
    options : mapping of str to object
        What was given; None, False and what is empty was not.
    study : str, optional
        What it is asked of: {study} in a reason.

    Raises
    ------
    UsageError
        "--option " and the reason.
    """
    for name, reason in kind.refuses.items():
        given = options.get(name)
        # By identity: 0 is a value, and equal to False.
        if not (given is None or given is False or given in ("", [])):
            raise UsageError(f"--{name.replace('_', '-')} {reason.format(study=study)}")
