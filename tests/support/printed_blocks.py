"""The commands and Python of the documentation, run as they are written, beside what the page says that they print.

In a block of `console`, `$ ` begins a command, and what follows is what it prints: all of it, or with lines `…` that
stand for any lines. Nothing there: only the exit code is looked at, which is 0 unless `# exit code N` follows the
command. In a block of `python`, all blocks of a page being one program, `print(x)  # 3` says what is printed.

`python tests/support/printed_blocks.py README.md ...` writes into the pages what their commands print now, where a
block has no `…`. With `--first README.md FILE` the page's first block of text must be what a file holds: that of a
command which takes too long for a test.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parents[2]
# What a page may hold beside: files, drawings in letters, and what is run by hand or by .ci/run.
NOT_RUN = {"toml", "text", "sh"}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
EXIT_CODE = re.compile(r"\s+# exit code (\d+)$")
SAID = re.compile(r"^\s*print\(.*\)  # (.+)$", flags=re.MULTILINE)
ANYTHING = "…"


@dataclass
class Command:
    """A line of a page, what it should print and how it should end."""

    line: str
    printed: list[str]
    exit_code: int

    @property
    def arguments(self) -> list[str]:
        """After the program's name; at one ε, to be quick, where nothing that is printed is looked at."""
        program, *rest = shlex.split(self.line, comments=True)
        assert program == "policysim", f"only policysim is run: {self.line}"
        sweeps = rest[0] == "compare" and not {"--epsilon", "--horizon"} & set(rest)
        return [*rest, "--epsilon", "1"] if sweeps and not self.printed else rest


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each block."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def commands(text: str) -> list[Command]:
    """Those of a block of `console`."""
    found: list[Command] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            code = EXIT_CODE.search(line)
            found.append(Command(EXIT_CODE.sub("", line[2:]), [], int(code[1]) if code else 0))
        else:
            found[-1].printed.append(line)
    for command in found:
        while command.printed and not command.printed[-1]:
            command.printed.pop()
    return found


def matches(printed: str, lines: list[str]) -> bool:
    """Whether a text is what a page says, `…` standing for any lines; spaces that hold words together are spaces."""
    pattern = "".join(r"(?:.*\n)*?" if line == ANYTHING else re.escape(line) + r" *\n" for line in lines)
    return re.fullmatch(pattern, printed.rstrip("\n").replace("\xa0", " ") + "\n") is not None


def run_command(command: Command) -> tuple[int, str]:
    """Exit code, and all that is printed."""
    from policysim.cli.main import main  # noqa: PLC0415

    with io.StringIO() as out, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = main(command.arguments)
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, out.getvalue()


@contextlib.contextmanager
def few_draws():
    """Fewer redraws, splits of a trial and trees: most of the time, where nothing that is printed is looked at."""
    fewer = {"decision.redraws.REDRAWS": 10, "trials.trial_columns.REPEATS": 1, "trials.evidence.LOOKS": (20,)}
    with contextlib.ExitStack() as stack:
        for name, value in fewer.items():
            stack.enter_context(mock.patch(f"policysim.{name}", value))
        for name in ("treatments.CLASSIFYING_TREES", "outcome_models.FEW_TREES"):
            stack.enter_context(mock.patch.dict(f"policysim.logs.{name}", max_iter=2))
        yield


@contextlib.contextmanager
def checkout(folder: Path):
    """A folder with what a command may read or write in a fresh checkout, as the current one."""
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__", "*.key"))
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def check_page(page: Path, folder: Path) -> int:
    """Run a page in a folder; returns how many commands and programs ran."""
    ran, names = 0, {}
    with checkout(folder):
        for language, text in blocks(page):
            if language == "console":
                for command in commands(text):
                    with contextlib.nullcontext() if command.printed else few_draws():
                        code, printed = run_command(command)
                    assert code == command.exit_code, f"{command.line}: exit code {code}\n{printed}"
                    if command.printed:
                        assert matches(printed, command.printed), f"{command.line} prints\n{printed}"
                    ran += 1
            elif language == "python":
                with io.StringIO() as out, contextlib.redirect_stdout(out):
                    exec(compile(text, str(page), "exec"), names)
                    printed = out.getvalue()
                assert printed.splitlines() == SAID.findall(text), f"{page.name} prints\n{printed}"
                ran += 1
            else:
                assert language in NOT_RUN, f"{page.name}: a block of {language}"
    return ran


def update(page: Path) -> None:
    """Write what commands print now."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, checkout(Path(folder)):

        def made(block: re.Match[str]) -> str:
            if block[1] != "console":
                return block[0]
            lines = []
            for command in commands(block[2]):
                code, printed = run_command(command)
                note = f"   # exit code {code}" if code else ""
                shown = command.printed
                if shown and ANYTHING not in shown:
                    shown = printed.rstrip("\n").replace("\xa0", " ").splitlines()
                elif shown and not matches(printed, shown):
                    sys.stderr.write(f"{page.name}: {command.line}: to be changed by hand:\n{printed}\n")
                # A blank line parts what is printed from the next command; commands alone stand together.
                lines += [f"$ {command.line}{note}", *shown, *([""] if shown else [])]
            return "```console\n" + "\n".join(lines).rstrip("\n") + "\n```"

        text = BLOCK.sub(made, text)
    page.write_text(re.sub(r" +$", "", text, flags=re.MULTILINE), encoding="utf-8")


def first_text(page: Path) -> list[str]:
    """The lines of a page's first block of `text`: what its first command prints."""
    return next(text for language, text in blocks(page) if language == "text").splitlines()


if __name__ == "__main__":
    if sys.argv[1] == "--first":
        _, _, its_page, screen = sys.argv
        if not matches(Path(screen).read_text(encoding="utf-8"), first_text(Path(its_page))):
            sys.exit(f"the first block of text in {its_page} is not what its command prints")
    else:
        for name in sys.argv[1:]:
            update(Path(name).resolve())
