"""The page that shows all reports of a folder as cards: `python -m policysim.cli.gallery FOLDER [--make]`.

It is written twice: README.md, for who looks at the repository, and index.html, one file to send around. Nothing on it
is typed: which studies there are, what they found, what is seen in their pictures and the commands that make them stand
in the manifests.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import quote, unquote

from envs.toml_reader import InputFileError
from policysim.cli import main as cli
from policysim.cli.parser import Parser
from policysim.files.output import progress_bar, write_files
from policysim.files.terminal import complain, open_streams
from policysim.question import EXIT_USAGE, OutputError
from policysim.question.answer import CARD
from policysim.question.words import days
from policysim.report.deliver import MANIFEST, page_text
from policysim.report.manifest import Manifest, read_manifest
from policysim.study.study_file import STUDY, study_names

README, INDEX = "README.md", "index.html"
TITLE = "What privacy costs, study by study"
INTRODUCTION = (
    "What each study found, in a sentence, a number and a picture; behind it are its report, all numbers, and the "
    "command that makes them again."
)
MADE_BY = (
    "`make reports` makes all of them again, and this page from them; `policysim reproduce FOLDER/manifest.json` says "
    "whether the same numbers come out."
)
# CSS pixels: letters of the picture are then some 10 high.
PICTURE_WIDTH = 280
# What Markdown would not show as it is, and what is written instead; in this order.
MARKUP = (
    (r"([\\`*\[\]])", r"\\\1"),
    (r"(?<!\w)_|_(?!\w)", r"\\_"),  # not within a name
    (r"&(?=#|\w+;)", "&amp;"),
    (r"<(?=[A-Za-z/!?])", "&lt;"),
    (r"(?<=\S)>|^>", "&gt;"),
    (r"^([#+=~-])", r"\\\1"),
)
HEADLINE = ("finding", "number", "about", "seen")
PNG, SVG = (f"figures/{CARD}.{kind}" for kind in ("png", "svg"))
PATIENTS, SOURCES = "Patients", "Source documents, figure by figure"


@dataclass(frozen=True)
class Card:
    """What is shown of a study.

    Attributes
    ----------
    folder : str
        Its name, as an address has it.
    question, finding, number, about, seen : str
        The question; the finding, one number and what it is, from the manifest; what is seen in the picture. An older
        manifest has no finding: then the question stands in its place, with nothing beside it.
    pictures : tuple of str
        The files that there are of it, those of `PNG` and `SVG`.
    command : str
        What makes the report again; "" if that needs files that are not there.
    """

    folder: str
    question: str
    finding: str
    number: str
    about: str
    seen: str
    pictures: tuple[str, ...]
    command: str

    @classmethod
    def of(cls, manifest: Manifest, folder: str) -> Card:
        """The card of a study in a folder of this name; InputFileError for a headline that is none."""
        found = manifest.document.get("headline", {})
        if not isinstance(found, dict) or not all(isinstance(found.get(key, ""), str) for key in HEADLINE):
            raise InputFileError(f"{manifest.path.as_posix()}: headline must be a table of {', '.join(HEADLINE)}")
        question = _title(manifest)
        finding, number, about, seen = (str(found.get(key, "")) for key in HEADLINE)
        pictures = tuple(name for name in (PNG, SVG) if name in manifest.results)
        name, command = quote(manifest.folder.name), _command(manifest, folder)
        return cls(name, question, finding or question, number, about, seen, pictures, command)


def gallery(folder: Path) -> str:
    """The page, in Markdown.

    Parameters
    ----------
    folder : Path
        Has a folder for each study, with its manifest.json.

    Raises
    ------
    InputFileError
        If there is no manifest, or if one cannot be used.
    """
    lines = ["# Reports", "", f"{INTRODUCTION} {MADE_BY}"]
    for heading, cards in _sections(folder):
        # A table without a head is no table in Markdown.
        lines += ["", f"## {heading}", "", "| | |", "|---|---|", *map(_row, cards)]
    return "\n".join(lines) + "\n"


def index(folder: Path) -> str:
    """The same as a page of HTML that asks for nothing but itself; parameters and errors as `gallery` has them."""
    from policysim.figures.inline import inline

    sections = _sections(folder)
    pictures: dict[str, str] = {}
    styles: dict[str, str] = {}
    for place, card in enumerate(card for _, cards in sections for card in cards):
        path = folder / unquote(card.folder) / SVG
        if SVG in card.pictures and path.is_file():
            pictures[card.folder] = inline(path.read_text(encoding="utf-8"), f"c{place}", styles=styles)
    values = {"heading": TITLE, "introduction": INTRODUCTION, "sections": sections, "pictures": pictures}
    return page_text("gallery.html", values, styles)


def _sections(folder: Path) -> list[tuple[str, list[Card]]]:
    """The cards under their headings."""
    found = manifests(folder)
    named = (
        (heading, [manifest for manifest in found if ("analysis" in manifest.document) == of_sources])
        for heading, of_sources in ((PATIENTS, False), (SOURCES, True))
    )
    name = folder.resolve().name
    return [(heading, [Card.of(each, name) for each in chosen]) for heading, chosen in named if chosen]


def manifests(folder: Path) -> list[Manifest]:
    """The manifests of all studies in a folder, by name; InputFileError if it has none."""
    if not folder.is_dir():
        raise InputFileError(f"{folder.as_posix()}: there is no such folder")
    found = [read_manifest(path) for path in sorted(folder.glob(f"*/{MANIFEST}"))]
    if not found:
        raise InputFileError(f"{folder.as_posix()}: none of its folders has a {MANIFEST}")
    return found


def make(folder: Path) -> int:
    """Run each study's command again, into its folder, with a progress bar; the exit code of the first that fails."""
    found = manifests(folder)
    with progress_bar("study") as progress:
        progress.expect(len(found))
        for manifest in found:
            with contextlib.redirect_stdout(io.StringIO()):
                code = _run(manifest, folder)
            if code:
                return code
            progress.advance()
    return 0


def _run(manifest: Manifest, folder: Path) -> int:
    if not manifest.script:
        return cli.main(_arguments(manifest, folder))
    if not Path(manifest.script).is_file():
        raise InputFileError(
            f"{manifest.script}: is missing; {manifest.path.as_posix()} names it, run from its repository"
        )
    return subprocess.run(
        [sys.executable, *_arguments(manifest, folder)], stdout=subprocess.DEVNULL, check=False
    ).returncode


def _row(card: Card) -> str:
    """A row of the table: the picture, and all else."""
    report = f"{card.folder}/report.html"
    picture = (
        f'<a href="{report}"><img src="{card.folder}/{card.pictures[0]}" width="{PICTURE_WIDTH}" '
        f'alt="{_attribute(card.seen)}"></a>'
        if card.pictures
        else ""
    )
    number = f"**{in_cell(card.number)}** {in_cell(card.about)}." if card.number else ""
    question = in_cell(card.question) if card.question != card.finding else ""
    links = [f"[numbers]({card.folder}/comparison.csv)", *([f"`{card.command}`"] if card.command else [])]
    words = [f"**[{in_cell(card.finding)}]({report})**", number, question, " · ".join(links)]
    return f"| {picture} | {'<br>'.join(filter(None, words))} |"


def _attribute(text: str) -> str:
    """Text as an attribute of HTML within a cell has it, with single spaces."""
    return escape(" ".join(text.split())).replace("|", "&#124;")


def in_cell(text: str) -> str:
    """Text as a cell of a table shows it."""
    return escaped(text).replace("|", "\\|")


def escaped(text: str) -> str:
    r"""Text as Markdown shows it: only what would be read as markup is marked.

    Examples
    --------
    >>> escaped("At p < 0.05 and cd4_baseline: *no* <b>")
    'At p < 0.05 and cd4_baseline: \\*no\\* &lt;b&gt;'
    """
    for pattern, replacement in MARKUP:
        text = re.sub(pattern, replacement, text)
    return text


def _command(manifest: Manifest, folder: str) -> str:
    if not manifest.script and not _is_here(manifest):
        return ""
    program = manifest.command[0] if manifest.script else "policysim"
    return shlex.join([program, *_arguments(manifest, Path(folder))])


def _is_here(manifest: Manifest) -> bool:
    """Whether the study can be run from the folder: one that names other files is not written beside its report."""
    return manifest.command[1] in study_names() or (manifest.folder / STUDY).is_file()


def _arguments(manifest: Manifest, folder: Path) -> list[str]:
    """The command line that makes a report where it is, without the program."""
    place = folder / manifest.folder.name
    if manifest.script:
        return [*manifest.command[1:], "--out", place.as_posix()]
    study = manifest.command[1] if manifest.command[1] in study_names() else (place / STUDY).as_posix()
    first, _, *options = manifest.command
    return [first, study, *options, "--out", str(place)]


def _title(manifest: Manifest) -> str:
    """The question, and over how many days."""
    title, horizon = manifest.document["study"].get("title", manifest.name), manifest.document.get("horizon")
    return title if horizon is None else f"{title} Over {days(horizon)}."


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages into a folder of reports; with --make, make the reports first."""
    open_streams()
    parser = Parser(prog="python -m policysim.cli.gallery", description="The pages of all reports.")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="has a folder for each study")
    parser.add_argument("--make", action="store_true", help="first run the command of each study again")
    chosen = parser.parse_args(arguments)
    try:
        code = make(chosen.folder) if chosen.make else 0
        if code == 0:
            pages = {README: gallery(chosen.folder), INDEX: index(chosen.folder)}
            write_files(chosen.folder, {name: page.encode() for name, page in pages.items()})
    except (InputFileError, OutputError) as error:
        complain(str(error))
        return EXIT_USAGE
    return code


if __name__ == "__main__":
    sys.exit(main())
