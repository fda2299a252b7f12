"""The page that shows all reports of a folder as cards: `python -m policysim.cli.gallery FOLDER [--make]`.

It is written twice: README.md, for who looks at the repository, and index.html, one file to send around. Nothing on it
is typed: which studies there are, what they found, what is seen in their pictures and the questions that make them
stand in the manifests. The script that makes a report of an experiment is never taken from a manifest.
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
from functools import partial
from html import escape
from pathlib import Path
from urllib.parse import quote, unquote

from envs.toml_reader import InputFileError, shown
from policysim.cli.main import exit_code
from policysim.cli.options import Parser
from policysim.cli.reproduce_command import ask
from policysim.files.terminal import complain, open_streams, progress_bar
from policysim.files.whole_files import write_files
from policysim.output.deliver import deliver, page_text
from policysim.output.manifest import Manifest, read_manifest, read_options
from policysim.output.screen import printed
from policysim.question import EXIT_INTERRUPTED, EXIT_USAGE, OutputError
from policysim.question.answer import CARD, MANIFEST, PAGE, Page
from policysim.question.formats import days
from policysim.study.study_reader import EXPERIMENTS, STUDY, study_names, study_path

README, INDEX = "README.md", "index.html"
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
        title, horizon = manifest.document["study"].get("title", manifest.name), manifest.question.get("horizon")
        if not isinstance(title, str):
            raise InputFileError(f"{manifest.path.as_posix()}: the title of study must be text, got {shown(title)}")
        question = f"{title} Over {days(horizon)}." if isinstance(horizon, int) else title
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
    sections = [(heading, list(map(_row, cards))) for heading, cards in _sections(folder)]
    return printed(Page("gallery.md", {"sections": sections}))


def index(folder: Path) -> str:
    """The same as a page of HTML that asks for nothing but itself; parameters and errors as `gallery` has them."""
    from policysim.figures.writing import inline

    sections = _sections(folder)
    pictures: dict[str, str] = {}
    styles: dict[str, str] = {}
    for place, card in enumerate(card for _, cards in sections for card in cards):
        path = folder / unquote(card.folder) / SVG
        if SVG in card.pictures and path.is_file():
            pictures[card.folder] = inline(path.read_text(encoding="utf-8"), f"c{place}", styles=styles)
    return page_text("gallery.html", {"sections": sections, "pictures": pictures}, styles)


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
    # A report without its manifest is unfinished, as `read_manifest` says.
    reports = {path.parent for name in (MANIFEST, PAGE) for path in folder.glob(f"*/{name}")}
    found = [read_manifest(report / MANIFEST) for report in sorted(reports)]
    if not found:
        raise InputFileError(f"{folder.as_posix()}: none of its folders has a {MANIFEST}")
    return found


def make(folder: Path) -> int:
    """Ask each study's question again, into its folder, with a progress bar; the exit code of the first that fails."""
    found = manifests(folder)
    with progress_bar("study") as progress:
        progress.expect(len(found))
        for manifest in found:
            with contextlib.redirect_stdout(io.StringIO()):
                code = exit_code(partial(_make, manifest))
            if code:
                return code
            progress.advance()
    return 0


def _make(manifest: Manifest) -> int:
    """Its report, made by its question, or by our script of its name.

    The study is as it is now, and so are the options that were not given.
    """
    script = EXPERIMENTS.get(manifest.name)
    if script is None:
        path = study_path(manifest.name) if manifest.name in study_names() else manifest.folder / STUDY
        question = ask(path, manifest.name, {key: manifest.question[key] for key in manifest.given})
        return deliver(
            question, command=manifest.command, given=manifest.given, out=manifest.folder, wanted=manifest.figures
        )
    if not Path(script).is_file():
        raise InputFileError(f"{script}: is missing; it makes {manifest.path.as_posix()}, run from its repository")
    seed = read_options(manifest.question, ["seed"]).get("seed", 1)
    command = [sys.executable, script, "--seed", str(seed), "--out", str(manifest.folder)]
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode


def _row(card: Card) -> str:
    """A row of the table: the picture, and all else."""
    report = f"{card.folder}/report.html"
    picture = (
        f'<a href="{report}"><img src="{card.folder}/{card.pictures[0]}" width="{PICTURE_WIDTH}" '
        f'alt="{escape(" ".join(card.seen.split())).replace("|", "&#124;")}"></a>'
        if card.pictures
        else ""
    )
    number = f"**{in_cell(card.number)}** {in_cell(card.about)}." if card.number else ""
    question = in_cell(card.question) if card.question != card.finding else ""
    links = [f"[numbers]({card.folder}/comparison.csv)", *([f"`{card.command}`"] if card.command else [])]
    words = [f"**[{in_cell(card.finding)}]({report})**", number, question, " · ".join(links)]
    return f"| {picture} | {'<br>'.join(filter(None, words))} |"


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
    """The command line of the manifest, for people, as it is typed above the folder; "" if its study is not there."""
    place = Path(folder) / manifest.folder.name
    command = manifest.command
    if manifest.name not in (*EXPERIMENTS, *study_names()):
        if not (manifest.folder / STUDY).is_file():
            return ""
        command = command.replace(STUDY, shlex.quote((place / STUDY).as_posix()), 1)
    return f"{command} --out {shlex.quote(place.as_posix())}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages into a folder of reports; with --make, make the reports first."""
    open_streams()
    parser = Parser(prog="python -m policysim.cli.gallery", description="The pages of all reports.")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="has a folder for each study")
    parser.add_argument("--make", action="store_true", help="first ask the question of each study again")
    chosen = parser.parse_args(arguments)
    try:
        code = make(chosen.folder) if chosen.make else 0
        if code == 0:
            pages = {README: gallery(chosen.folder), INDEX: index(chosen.folder)}
            write_files(chosen.folder, {name: page.encode() for name, page in pages.items()})
    except (InputFileError, OutputError) as error:
        complain(str(error))
        return EXIT_USAGE
    except KeyboardInterrupt as stop:
        complain(f"interrupted; {str(stop) or 'nothing was written'}")
        return EXIT_INTERRUPTED
    return code


if __name__ == "__main__":
    sys.exit(main())
