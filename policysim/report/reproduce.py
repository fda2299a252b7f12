"""A report made again from its manifest.json, and compared with the files beside it.

A manifest may be a stranger's. All that is taken from it is a command line of `compare` or `choose` for our own parser
(`policysim.cli.reproduce_command`), names of files in its own folder, and digests. Nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from envs.toml_reader import InputFileError, one_line
from policysim.files.keyed_digests import KEY, DataFiles, Digests
from policysim.numbers import several, to_csv
from policysim.report.contents import MANIFEST, PAGE, Contents
from policysim.report.differences import (
    MISSING,
    THERE,
    Disagreement,
    TextRows,
    csv_rows,
    csv_text,
    differences,
    read_text,
)
from policysim.report.folder import FORMAT, FigureFiles, versions_of
from policysim.study.declared import Study
from policysim.study.study_reader import STUDY, load_study, study_names
from policysim.words import wrapped

# A thousand times what is usual: a larger file is no manifest, and is not read.
MOST_BYTES = 10_000_000
# Longer command lines would only take time.
MOST_ARGUMENTS, LONGEST_ARGUMENT = 100, 10_000
MOST_SHOWN, MOST_LETTERS = 20, 300
WITHOUT_KEY = (
    f"Not checked: whether data, pages and figures are those of that run. Its digests are under a key, {KEY} beside "
    "the data, which is missing here or another one."
)


@dataclass(frozen=True)
class Manifest:
    """What a run wrote down about itself.

    Attributes
    ----------
    path : Path
        The file.
    document : mapping
        All of it.
    arguments : tuple of str
        The command line, not yet understood.
    name : str
        Of the study.
    results : mapping of relative path to str
        The digest of each file that the run made.
    """

    path: Path
    document: Mapping[str, Any]
    arguments: tuple[str, ...]
    name: str
    results: Mapping[str, str]

    def path_of(self, name: str) -> Path:
        """Where a file of its folder is; InputFileError for a link, or below one out of the folder."""
        path = self.path.parent / name
        if path.is_symlink() or not path.resolve().is_relative_to(self.path.parent.resolve()):
            raise InputFileError(f"{path.as_posix()}: leads out of the folder of {self.path.as_posix()}, or is a link")
        return path

    def tables(self) -> dict[str, TextRows]:
        """The tables among its results, as they are now; InputFileError where one cannot be read."""
        return {name: csv_rows(self.path_of(name)) for name in self.results if name.endswith(".csv")}

    def digests(self, data: DataFiles) -> Digests | None:
        """Those that the run took of its data; None where the key beside them is not the run's."""
        digests, stated = data.digests(make_key=False), self.document.get("data")
        stated_key = stated.get("key") if isinstance(stated, dict) else None
        return digests if digests is not None and digests.key_check == stated_key else None

    def study(self) -> Study:
        """The study, built in or beside the manifest, whose files have the digests that the manifest states.

        Data are not checked without the key of the run.

        Raises
        ------
        InputFileError
            If there is no such study, or if its file or its scenario is another one.
        ValueError
            If its data are others.
        """
        path = self.path_of(STUDY)
        if not path.exists() and self.name not in study_names():
            raise InputFileError(
                f"{self.path.as_posix()}: its study {self.name} is not built in, and there is no {STUDY} beside it; "
                "put the study there, with the files that it names"
            )
        study = load_study(path, self.name) if path.exists() else load_study(self.name)
        if study.digest != self.document["study"]["sha256"]:
            source = path.as_posix() if path.exists() else self.name
            raise InputFileError(f"{source}: is not the study of {self.path.as_posix()}: its SHA-256 is another one")
        digests = self.digests(study.data)
        try:
            now = {**study.identity, **({} if digests is None else study.data.document(digests))}
        except OSError as error:
            raise InputFileError(f"{error.filename}: cannot be read: {error.strerror}") from None
        for key, value in now.items():
            if key != "study" and value != self.document.get(key):
                of_data = key == "data"
                what = f"data ({', '.join(study.data.names)})" if of_data else key.removesuffix("_sha256")
                kind = ValueError if of_data else InputFileError
                raise kind(f"{self.path.as_posix()}: the {what} changed since this report was made (another digest)")
        return study


def read_manifest(path: Path) -> Manifest:
    """Read a manifest; InputFileError, in one line, for anything that is not one."""
    if path.name == MANIFEST and path.parent.is_dir() and not path.exists():
        raise InputFileError(
            f"{path.as_posix()}: is missing: the report in this folder is unfinished, or there is none; policysim "
            f"compare with --out {path.parent.as_posix()} completes it"
        )
    if (path / MANIFEST).is_file():
        hint = (path / MANIFEST).as_posix()
        raise InputFileError(f"{path.as_posix()} is a folder: did you mean {hint}?", located=False)
    text = read_text(path, MOST_BYTES)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputFileError(f"{path.as_posix()}: is not JSON: {error}") from None
    document = document if isinstance(document, dict) else {}
    study, arguments, results = (document.get(key) for key in ("study", "command", "results"))
    if "format" in document and document["format"] != FORMAT:
        raise InputFileError(
            f"{path.as_posix()}: was written by another version of policysim: its format is not {FORMAT}; make its "
            "report again with policysim compare"
        )
    faults = {
        f"format must be {FORMAT}": "format" in document,
        "command must be a list of texts": _are_arguments(arguments),
        "command is empty: its report was made in Python": arguments,
        "study must have a name and a sha256": _names_a_study(study),
        "results must be a table of relative paths, a table.csv among them, and their digests": _are_results(results),
    }
    for fault, holds in faults.items():
        if not holds:
            raise InputFileError(f"{path.as_posix()}: is not a manifest of policysim compare: {fault}")
    return Manifest(path, document, tuple(document["command"]), document["study"]["name"], document["results"])


def _are_arguments(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= MOST_ARGUMENTS
        and all(isinstance(text, str) and text.isprintable() and len(text) <= LONGEST_ARGUMENT for text in value)
    )


def _names_a_study(value: object) -> bool:
    name, digest = (value.get("name"), value.get("sha256")) if isinstance(value, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(digest, str):
        return False
    return name.isprintable() and name != ".." and PurePosixPath(name).name == name != ""


def _are_results(value: object) -> bool:
    return (
        isinstance(value, dict)
        and all(isinstance(digest, str) and _stays_below(name) for name, digest in value.items())
        and any(name.endswith(".csv") for name in value)
    )


def _stays_below(name: str) -> bool:
    path = PureWindowsPath(name)  # which knows both kinds of separators
    return not path.anchor and ".." not in path.parts and name.isprintable()


@dataclass(frozen=True)
class Reproduction:
    """What came of making a report again.

    Attributes
    ----------
    manifest : Manifest
        Of the report.
    n_numbers : mapping of str to int
        How many numbers each of its tables has.
    differences : tuple of Disagreement
        Rows and cells of tables that differ, files that only one of the runs made, and pages and figures that are
        missing or were changed after the run.
    versions : tuple of Disagreement
        Packages of another version, which are no failure.
    digests_checked : bool
        Whether the key of the run's digests was there, if they are under one.
    """

    manifest: Manifest
    n_numbers: Mapping[str, int]
    differences: tuple[Disagreement, ...]
    versions: tuple[Disagreement, ...]
    digests_checked: bool

    def document(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "manifest": self.manifest.path.as_posix(),
            "command": list(self.manifest.arguments),
            "agree": not self.differences,
            "digests_checked": self.digests_checked,
            "numbers": dict(self.n_numbers),
            "differences": [asdict(difference) for difference in self.differences],
            "versions": [asdict(difference) for difference in self.versions],
        }

    def text(self) -> str:
        """What is printed: whether all agree, the first differences, and packages of another version."""
        n_tables = len(self.n_numbers)
        numbers = f"{sum(self.n_numbers.values()):,} numbers in {several(n_tables, 'table')}"
        lines = [one_line(f"policysim {' '.join(self.manifest.arguments)}")]
        if self.differences:
            lines.append(f"{several(len(self.differences), 'difference')}, of {numbers}:")
            lines += [f"  {difference_words(difference)}" for difference in self.differences[:MOST_SHOWN]]
            more = len(self.differences) - MOST_SHOWN
            lines += [f"  and {more:,} more; --json lists all"] if more > 0 else []
        else:
            others = several(len(self.manifest.results) - n_tables, "other file")
            unchanged = " unchanged since that run" if self.digests_checked else ""
            lines.append(f"{numbers} agree; {others} beside them{unchanged}.")
        lines += [] if self.digests_checked else wrapped(WITHOUT_KEY)
        if self.versions:
            reason = ", which may be the reason" if self.differences else ""
            changed = "; ".join(f"{one.column} {one.old}, now {one.new}" for one in self.versions)
            lines.append(one_line(f"Other versions{reason}: {changed}"))
        return "\n".join(lines) + "\n"


def difference_words(difference: Disagreement) -> str:
    """One difference in one line."""
    key = ", ".join(f"{column} {text}" for column, text in difference.key.items())
    row = f", row {difference.row}" if difference.row else ""
    place = f"{difference.file}{row}{f' ({key})' if key else ''}"
    old, new = (text[:MOST_LETTERS] or "–" for text in (difference.old, difference.new))
    return one_line(f"{place}: {difference.column} {old}; now {new}")


def compare_with(
    manifest: Manifest, old: Mapping[str, TextRows], report: Contents, wanted: FigureFiles
) -> Reproduction:
    """Compare the files beside a manifest with a report that the same command made now.

    Parameters
    ----------
    manifest : Manifest
        The manifest.
    old : mapping of str to TextRows
        Its tables.
    report : Contents
        Made again; nothing is drawn.
    wanted : FigureFiles
        The figure files that the command asks for.
    """
    found: list[Disagreement] = []
    digests = manifest.digests(report.data)
    new = {f"{name}.csv": csv_text(to_csv(table).decode()) for name, table in report.tables.items()}
    for name, table in old.items():
        found += differences(name, table, new.get(name, table))
    made_now = {*new, PAGE, *(path for drawing in wanted.chosen(report.drawings) for path in wanted.paths(drawing))}
    for name in sorted(made_now ^ manifest.results.keys()):
        found.append(Disagreement(name, 0, {}, "file", *((MISSING, THERE) if name in made_now else (THERE, MISSING))))
    for name, then in manifest.results.items():
        path = manifest.path_of(name)
        if not path.is_file():
            found.append(Disagreement(name, 0, {}, "file", "written by that run", MISSING))
        elif digests is not None and name not in old and digests.of_file(path) != then:
            found.append(Disagreement(name, 0, {}, "file", "written by that run", "changed"))
    stated = manifest.document.get("versions")
    before, now = stated if isinstance(stated, dict) else {}, versions_of(report)
    versions = tuple(
        Disagreement(MANIFEST, 0, {}, name, str(before.get(name, MISSING)), now.get(name, MISSING))
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    )
    n_numbers = {name: table.n_numbers for name, table in old.items()}
    return Reproduction(manifest, n_numbers, tuple(found), versions, digests is not None)
