"""The protocol that every question follows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Self

from policysim.errors import UsageError
from policysim.progress import Progress
from policysim.question.answer import Answer

# Why a question about one decision, or about something else than days, does not take these.
ONLY_OVER_DAYS = dict.fromkeys(("total_epsilon", "delta", "length_public"), "only goes with --horizon")

# Why a question that reads no log takes none of these.
ONLY_WHERE_COUNTED = dict.fromkeys(("workers", "cluster"), "only goes with a log, which is counted")


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
