"""How policysim init asks: options answer first, then a terminal; without one, all open questions are one error."""

from __future__ import annotations

import shlex
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from policysim.errors import UsageError
from policysim.files.terminal import complain

DIRECTION = "direction"


@dataclass
class Dialogue:
    """Questions, and the answers to them.

    Attributes
    ----------
    source : str
        The file, for messages.
    questions : mapping of str to str
        By the names of options, in the order of the command.
    answers : dict of str to str
        As typed. What is answered on the way is added.
    command : sequence of str
        What is typed before these options.
    prompt : callable or None
        Asks on a terminal, and returns what is typed; None without one.
    show : callable
        Shows what the questions are about, before the first one.
    """

    source: str
    questions: Mapping[str, str]
    answers: dict[str, str]
    command: Sequence[str]
    prompt: Callable[[str], str] | None
    show: Callable[[], object]
    _open: list[str] = field(default_factory=list, init=False)

    def ask(
        self, option: str, read: Callable[[str], None], candidates: str = "", default: str = "", more: str = ""
    ) -> None:
        """Have `read` take the answer; where nobody is there to ask, the default, and the candidates are proposed.

        On a terminal Enter means the default, if there is one, and what `read` refuses is asked for again.

        Raises
        ------
        UsageError
            For the value of an option that `read` refuses.
        """
        if option in self.answers:
            try:
                read(self.answers[option])
            except (UsageError, ArgumentTypeError) as error:
                stated = self.answers[option] if option == DIRECTION else option
                raise UsageError(f"--{stated}: {error}") from None
            return
        if not self._open:
            self.show()
        question = f"{self.questions[option]} {more}".rstrip()
        self._open.append(question if option == DIRECTION else f"--{option}: {question}")
        if self.prompt is None:
            self.answers[option] = default or f"<{candidates}>"
            if default:
                read(default)
            return
        while option not in self.answers:
            answer = self.prompt(f"{question}\n[{default or candidates}] ") or default
            try:
                read(answer)
            except (UsageError, ArgumentTypeError) as error:
                complain(str(error))
            else:
                self.answers[option] = answer

    def raise_if_open(self) -> None:
        """Raise UsageError with all questions and the command, where nobody was there to answer them."""
        if self._open and self.prompt is None:
            raise UsageError("\n".join([f"{self.source}: init needs to know:", *self._open, self.type_next()]))

    def type_next(self, **others: str) -> str:
        """The command with all answers, or others in their place; what is only proposed stands in <>."""
        words, answers = [*self.command], self.answers | others
        for option in (option for option in self.questions if option in answers):
            text = answers[option]
            if option == DIRECTION:
                words.append(text if text.startswith("<") else f"--{text}")
            else:  # a name such as -5 is not an option
                words += [f"--{option}={text}"] if text.startswith("-") else [f"--{option}", text]
        return f"Type: {shlex.join(words)}"
