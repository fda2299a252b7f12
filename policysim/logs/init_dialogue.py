"""How policysim init asks: options answer first, then a terminal; without one, all open questions are one error."""

from __future__ import annotations

import shlex
from argparse import ArgumentTypeError
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from envs.toml_reader import unknown
from policysim.errors import UsageError
from policysim.files.terminal import complain
from policysim.logs.column_summary import ColumnSummary
from policysim.logs.toml_text import toml_text

DIRECTION = "direction"


@dataclass
class Dialogue:
    """Questions about the columns of a file, and the answers to them.

    Attributes
    ----------
    source : str
        The file, for messages.
    columns : dict of str to ColumnSummary
    questions : mapping of str to str
        By the names of options, in the order of the command.
    answers : dict of str to str
        As typed. What is answered on the way is added.
    command : sequence of str
        What is typed before these options.
    split : callable
        Divides a text into names, at its commas.
    prompt : callable or None
        Asks on a terminal, and returns what is typed; None without one.
    show : callable
        Shows the columns, before the first question.
    """

    source: str
    columns: dict[str, ColumnSummary]
    questions: Mapping[str, str]
    answers: dict[str, str]
    command: Sequence[str]
    split: Callable[[str], list[str]]
    prompt: Callable[[str], str] | None
    show: Callable[[], object]
    _used: dict[str, str] = field(default_factory=dict, init=False)
    _open: list[str] = field(default_factory=list, init=False)

    def ask(self, option: str, read: Callable[[str], object], proposal: str, default: str = "", more: str = "") -> None:
        """Have `read` take the answer; where nobody is there to ask, put the proposal into the command.

        On a terminal Enter means the `default`, if there is one, and what `read` refuses is asked for again.

        Raises
        ------
        UsageError
            For the value of an option that `read` refuses.
        """
        question, typed = " ".join(filter(None, [self.questions[option], more])), self.answers.get(option)
        if typed is None:
            if not self._open:
                self.show()
            self._open.append(question if option == DIRECTION else f"--{option}: {question}")
        while typed is not None or self.prompt:
            answer = typed or (self.prompt and self.prompt(f"{question}\n[{default or proposal}] ")) or default
            before = dict(self._used)
            try:
                read(answer)
            except (UsageError, ArgumentTypeError) as error:
                if typed is not None:
                    raise UsageError(f"--{option}: {error}") from None
                self._used = before
                complain(str(error))
            else:
                self.answers[option] = answer
                return
        self.answers[option] = default or f"<{proposal}>"

    def raise_if_open(self) -> None:
        """Raise UsageError with all questions and the command, where nobody was there to answer them."""
        if self._open and not self.prompt:
            raise UsageError("\n".join([f"{self.source}: init needs to know:", *self._open, self.type_next()]))

    def type_next(self) -> str:
        """The command with all answers; what is only proposed stands in <>."""
        words = [*self.command]
        for option in (option for option in self.questions if option in self.answers):
            text = self.answers[option]
            if option == DIRECTION:
                words.append(text if text.startswith("<") else f"--{text}")
            else:  # a name such as -5 is not an option
                words += [f"--{option}={text}"] if text.startswith("-") else [f"--{option}", text]
        return f"Type: {shlex.join(words)}"

    def is_column(self, name: str) -> bool:
        """Whether there is such a column."""
        return bool(name.strip()) and name.strip() in map(str.strip, self.columns)

    def named(self, name: str) -> ColumnSummary:
        """A column by its name, whose margins need not be typed."""
        alike = [column for column in self.columns if name.strip() and column.strip() == name.strip()]
        name = alike[0] if name not in self.columns and len(alike) == 1 else name
        if not name or name not in self.columns:
            raise UsageError(unknown("column", name, [column for column in self.columns if column]))
        return self.columns[name]

    def column(self, option: str, name: str) -> ColumnSummary:
        """A column that has no other use yet."""
        column = self.named(name)
        if column.name in self._used:
            raise UsageError(
                f"{toml_text(column.name)} is the --{self._used[column.name]} already: give another column"
            )
        self._used[column.name] = option
        return column

    @property
    def unused(self) -> list[ColumnSummary]:
        """The columns that have no use yet."""
        return [column for name, column in self.columns.items() if name and name not in self._used]


def in_quotes(names: Collection[str]) -> str:
    """Names as `cli.options.names` reads them: in quotes if one holds commas, quotes or margins."""
    odd = {*',"\r\n'}
    quoted = ('"' + name.replace('"', '""') + '"' if odd & {*name} or name != name.strip() else name for name in names)
    return ",".join(quoted)
