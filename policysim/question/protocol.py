"""The protocol that every question follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from policysim.question.answer import Answer
from policysim.question.progress import Progress

# Why a question about one decision, or about something else than days, does not take these.
ONLY_OVER_DAYS = dict.fromkeys(("total_epsilon", "delta", "length_public"), "only goes with --horizon")


class UsageError(Exception):
    """Something that cannot be asked; str() is one line for the user."""


class Question(Protocol):
    """Something that can be asked and answered.

    Attributes
    ----------
    name : str
        Of its folder among the reports.
    refuses : mapping of option to str
        Options of the command line that it does not take, and why; by their names in Python.
    unit : str
        What a step of its progress is, in a word.
    """

    refuses: ClassVar[Mapping[str, str]]
    unit: ClassVar[str]

    @property
    def writes(self) -> bool:
        """Whether the answer surely leaves files, so that a folder that cannot be written is found out first."""

    @property
    def name(self) -> str:
        """Of its folder among the reports."""

    def answer(self, progress: Progress) -> Answer:
        """Compute everything; nothing is printed or written."""


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
