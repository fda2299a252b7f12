"""A report made again from its manifest: what `policysim reproduce` asks, what agrees and what differs, in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from envs.toml_reader import InputFileError, one_line
from policysim.errors import EXIT_CHECK, UsageError
from policysim.files.many_files import file_digest
from policysim.numbers import several
from policysim.output.deliver import digest, folder_files
from policysim.output.differences import (
    MISSING,
    MOST_BYTES,
    THERE,
    Disagreement,
    TextRows,
    csv_rows,
    csv_text,
    differences,
    read_text,
    statements,
)
from policysim.output.manifest import Manifest, read_manifest
from policysim.progress import SILENT, Progress
from policysim.question.answer import MANIFEST, Answer, Page
from policysim.question.protocol import Question, StudyQuestion
from policysim.study.study_reader import STUDY, study_names, study_path

MOST_SHOWN, MOST_LETTERS = 20, 300


@dataclass(frozen=True)
class ReproduceQuestion(Question):
    """Make a report again.

    Attributes
    ----------
    manifest : Path
        A manifest.json beside its report.
    ask : callable
        Understands the options of a question.
    """

    manifest: Path
    ask: Ask
    unit: ClassVar[str] = "step"

    @property
    def name(self) -> str:
        """The report's."""
        return self.manifest.parent.name

    def answer(self, progress: Progress) -> Answer:
        """Ask again and compare; exit code 4 if anything but the bytes of a page or figure does not agree."""
        found = reproduce(self.manifest, self.ask, progress)
        return Answer(
            screen=Page("reproduction-screen.txt", reproduction_texts(found)),
            document={
                "manifest": found.manifest.path.as_posix(),
                "question": found.manifest.question,
                "agree": not found.differences,
                "numbers": found.n_numbers,
                "differences": [asdict(difference) for difference in found.differences],
                "remarks": [asdict(remark) for remark in found.remarks],
                "same": list(found.same),
            },
            exit_code=EXIT_CHECK if found.differences else 0,
        )


def reproduction_texts(found: Reproduction) -> dict[str, Any]:
    """What was asked again, what differs, and what agrees."""
    options = [f"{name} {_in_words(value)}" for name, value in found.manifest.question.items()]
    differences, more = found.differences, len(found.differences) - MOST_SHOWN
    pages = [name for name in found.same if name.endswith(".html")]
    figures = [several(len(found.same) - len(pages), "figure file")] if len(found.same) > len(pages) else []
    reason = ", a possible reason" if differences else ""
    return {
        "asked": "; ".join([found.manifest.name, *options]),
        "compared": f"{sum(found.n_numbers.values()):,} numbers in {several(len(found.n_numbers), 'file')}",
        "number": [several(len(differences), "difference")] if differences else [],
        "differences": [difference_words(difference) for difference in differences[:MOST_SHOWN]],
        "more": [f"{more:,}"] if more > 0 else [],
        "agreeing": [] if differences else [", ".join(found.n_numbers)],
        "same": [" and ".join([*pages, *figures])] if found.same else [],
        "changed": [reason] if found.remarks else [],
        "remarks": [difference_words(remark) for remark in found.remarks],
    }


def difference_words(difference: Disagreement) -> str:
    """One difference in one line."""
    key = ", ".join(f"{column} {text}" for column, text in difference.key.items())
    row = f", row {difference.row}" if difference.row else ""
    place = f"{difference.file}{row}{f' ({key})' if key else ''}"
    old, new = (short(text[:MOST_LETTERS]) or "–" for text in (difference.old, difference.new))
    return one_line(f"{place}: {difference.column} {old}; now {new}")


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in value) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


# What a manifest says that numbers depend on, and that may be another one: not a difference, but a possible reason.
VERSIONS = "versions."
# From a study's file, its name and the options of a manifest to the question; UsageError for what cannot be asked.
Ask: TypeAlias = Callable[[Path, str, dict[str, Any]], StudyQuestion]


@dataclass(frozen=True)
class Reproduction:
    """What came of asking a manifest's question again.

    Attributes
    ----------
    manifest : Manifest
        What was asked again.
    n_numbers : mapping of str to int
        How many numbers were compared in each CSV file.
    differences : tuple of Difference
        Rows and cells of tables that differ, what the manifest says and the new one does not, and pages and figures
        that are missing or were changed after the run.
    remarks : tuple of Difference
        What differs and is no failure: versions, pages and figures of other bytes, and a table that was written in
        another way.
    same : tuple of str
        Pages and figures that came out byte for byte.
    """

    manifest: Manifest
    n_numbers: dict[str, int]
    differences: tuple[Disagreement, ...]
    remarks: tuple[Disagreement, ...]
    same: tuple[str, ...]


def reproduce(path: Path, ask: Ask, progress: Progress = SILENT) -> Reproduction:
    """Ask what a manifest describes again, and compare the answer with the report beside it.

    Nothing is written, and nothing that the manifest names is run.

    Parameters
    ----------
    path : Path
        The manifest.
    ask : callable
        Understands the options of a question.
    progress : Progress, optional
        Told of the steps of the answer.

    Raises
    ------
    InputFileError
        If the manifest, its study, the study's data or one of its CSV files is missing, the study is another one, or
        the question cannot be asked.
    ValueError
        If its data is another one.
    """
    manifest = read_manifest(path)
    # Before anything is computed: a table that is missing makes all of it useless.
    old = {name: csv_rows(manifest.place(name)) for name in manifest.tables}
    return _compare(manifest, old, made_again(manifest, ask, progress))


def made_again(manifest: Manifest, ask: Ask, progress: Progress) -> dict[str, bytes]:
    """The files that the same question leaves behind today, by relative path."""
    answer = question_of(manifest, ask).answer(progress)
    return folder_files(answer, manifest.command, manifest.figures, manifest.folder, progress, given=manifest.given)


def question_of(manifest: Manifest, ask: Ask) -> StudyQuestion:
    """The question of a manifest; errors as `reproduce` has them."""
    try:
        question = ask(_find_study(manifest), manifest.name, manifest.question)
    except UsageError as error:
        raise InputFileError(f"{manifest.path.as_posix()}: question: {error}") from None
    _check_data(manifest, question)
    return question.with_given(manifest.given)


def _find_study(manifest: Manifest) -> Path:
    """The file of the study, checked."""
    path = manifest.place(STUDY)
    if not path.exists():
        if manifest.name not in study_names():
            raise InputFileError(
                f"{manifest.path.as_posix()}: its study {manifest.name} is not built in, and there is no {STUDY} "
                "beside it; put the study there, with the files that it names"
            )
        path = study_path(manifest.name)
    found = digest(read_text(path, MOST_BYTES).removeprefix("\ufeff").encode())
    if found != manifest.study_digest:
        raise InputFileError(
            f"{path.as_posix()}: is not the study of {manifest.path.as_posix()}: "
            f"SHA-256 {short(found)}, there {short(manifest.study_digest)}"
        )
    return path


def _check_data(manifest: Manifest, question: StudyQuestion) -> None:
    """The data files are those of the manifest, before anything is computed."""
    try:
        data: Mapping[str, str] = question.study.identity.get("data", {})
    except OSError as error:
        raise InputFileError(f"{error.filename}: cannot be read: {error.strerror}") from None
    for name in dict.fromkeys([*manifest.data, *data]):
        now, then = data.get(name, MISSING), manifest.data.get(name, MISSING)
        if now != then:
            raise ValueError(
                f"{(manifest.folder / name).as_posix()}: is not the data of {manifest.path.as_posix()}: "
                f"SHA-256 {short(now)}, there {short(then)}"
            )


def short(text: str) -> str:
    """A digest by its beginning; other text as it is."""
    return f"{text[:12]}…" if len(text) == 64 and " " not in text else text


def _compare(manifest: Manifest, old: Mapping[str, TextRows], files: Mapping[str, bytes]) -> Reproduction:
    document = json.loads(files[MANIFEST])
    results = document.pop("results")
    found: list[Disagreement] = []
    tables = {name: csv_text(files[name].decode()) for name in results if name.endswith(".csv")}
    for name in dict.fromkeys([*old, *tables]):
        if name in old and name in tables:
            found += differences(name, old[name], tables[name])
        else:
            found.append(Disagreement(name, 0, {}, "file", *((MISSING, THERE) if name in tables else (THERE, MISSING))))
    # The digests of the results are compared file by file.
    said = {name: value for name, value in manifest.document.items() if name != "results"}
    stated = statements(manifest.path.name, said, document)
    found += [each for each in stated if not each.column.startswith(VERSIONS)]
    remarks = [each for each in stated if each.column.startswith(VERSIONS)]
    same = []
    for name, then in manifest.results.items():
        path = manifest.place(name)
        beside = file_digest(path) if path.is_file() else MISSING
        if beside == MISSING:
            found.append(Disagreement(name, 0, {}, "file", MISSING, THERE))
        elif beside != then:
            changed = Disagreement(name, 0, {}, "changed after that run, SHA-256", then, beside)
            (remarks if name in old else found).append(changed)
        elif name not in old and results.get(name) == then:
            same.append(name)
        elif name not in old:
            remarks.append(Disagreement(name, 0, {}, "SHA-256", then, results.get(name, MISSING)))
    remarks += [
        Disagreement(name, 0, {}, "file", MISSING, THERE)
        for name in results
        if name not in manifest.results and name not in tables
    ]
    return Reproduction(
        manifest, {name: table.n_numbers for name, table in old.items()}, tuple(found), tuple(remarks), tuple(same)
    )
