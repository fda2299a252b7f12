"""The page that shows all reports of a folder: `python -m policysim.cli.gallery FOLDER [--make]`.

Nothing on it is typed: which studies there are, their answers and the commands that make them stand in the manifests.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from envs.toml_reader import InputFileError
from policysim.cli import main as cli
from policysim.cli.parser import Parser
from policysim.files.output import progress_bar, write_files
from policysim.question import EXIT_USAGE, OutputError
from policysim.question.words import days
from policysim.report.deliver import MANIFEST
from policysim.report.manifest import Manifest, read_manifest
from policysim.study.study_file import STUDY, study_names

PAGE = "README.md"
INTRODUCTION = (
    "A folder for each study: the study that was run and what policysim made of it. `make reports` makes all of them "
    "again, and this page from them; `policysim reproduce FOLDER/manifest.json` says whether the same numbers come "
    "out. An experiment is a script of this repository, which `make reports` runs."
)
# What Markdown would not show as it is, and what is written instead; in this order.
MARKUP = (
    (r"[ \t]*[\r\n]+[ \t]*", " "),
    (r"([\\`*\[\]])", r"\\\1"),
    (r"(?<!\w)_|_(?!\w)", r"\\_"),  # not within a name
    (r"&(?=#|\w+;)", "&amp;"),
    (r"<(?=[A-Za-z/!?])", "&lt;"),
    (r"(?<=\S)>|^>", "&gt;"),
    (r"^([#+=~-])", r"\\\1"),
)
PATIENTS, SOURCES = "Patients", "Source documents, figure by figure"


def gallery(folder: Path) -> str:
    """The page, in Markdown.

    Parameters
    ----------
    folder : Path
        Has a folder for each study, with its manifest.json.

    Raises
    ------
    InputFileError
        If there is no manifest, or if one cannot be used, or has no answer or no figure.
    """
    found = manifests(folder)
    lines = ["# Reports", "", INTRODUCTION]
    for heading, of_sources in ((PATIENTS, False), (SOURCES, True)):
        chosen = [manifest for manifest in found if ("analysis" in manifest.document) == of_sources]
        if chosen:
            lines += ["", f"## {heading}"]
        for manifest in chosen:
            lines += ["", *_entry(manifest, folder.resolve().name)]
    return "\n".join(lines) + "\n"


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


def _entry(manifest: Manifest, folder: str) -> list[str]:
    """One study: its question, answer, figure, and where the rest is."""
    name = quote(manifest.folder.name)
    links = [f"[Report]({name}/report.html)", f"[numbers]({name}/comparison.csv)"]
    if manifest.script or _is_here(manifest):
        program = manifest.command[0] if manifest.script else "policysim"
        links.append(f"`{shlex.join([program, *_arguments(manifest, Path(folder))])}`")
    return [
        f"### {escaped(_title(manifest))}",
        "",
        escaped(" ".join(_answer(manifest))),
        "",
        f"![{escaped(_figure(manifest).stem.replace('-', ' '))}]({name}/{quote(_figure(manifest).as_posix())})",
        "",
        " · ".join(links),
    ]


def escaped(text: str) -> str:
    r"""Text as Markdown shows it: only what would be read as markup is marked, and it stays in one line.

    Examples
    --------
    >>> escaped("At p < 0.05 and cd4_baseline: *no* <b>")
    'At p < 0.05 and cd4_baseline: \\*no\\* &lt;b&gt;'
    """
    for pattern, replacement in MARKUP:
        text = re.sub(pattern, replacement, text)
    return text


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


def _answer(manifest: Manifest) -> list[str]:
    answer = manifest.document.get("answer")
    if not isinstance(answer, list) or not answer or not all(isinstance(sentence, str) for sentence in answer):
        raise InputFileError(f"{manifest.path.as_posix()}: answer must be a list of sentences")
    return answer


def _figure(manifest: Manifest) -> Path:
    """The first figure of the page."""
    figures = [name for name in manifest.results if name.endswith(".png")]
    if not figures:
        raise InputFileError(f"{manifest.path.as_posix()}: results name no .png file")
    return Path(figures[0])


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page into a folder of reports; with --make, make the reports first."""
    parser = Parser(prog="python -m policysim.cli.gallery", description="The page of all reports.")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="has a folder for each study")
    parser.add_argument("--make", action="store_true", help="first run the command of each study again")
    chosen = parser.parse_args(arguments)
    try:
        code = make(chosen.folder) if chosen.make else 0
        if code == 0:
            write_files(chosen.folder, {PAGE: gallery(chosen.folder).encode()})
    except (InputFileError, OutputError) as error:
        sys.stderr.write(f"policysim: {error}\n")
        return EXIT_USAGE
    return code


if __name__ == "__main__":
    sys.exit(main())
