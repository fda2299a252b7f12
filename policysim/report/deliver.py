"""Any question asked and answered: printed, or as one JSON document, and written as a folder."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from policysim.files.output import OutputError, alone_in, print_json, progress_bar, write_files
from policysim.question.answer import Answer
from policysim.question.protocol import Question
from policysim.question.words import fitted
from policysim.report.folder import DEFAULT, MANIFEST, FigureFiles, folder_files, manifest_of

REPORTS = Path("reports")


def deliver(
    question: Question,
    *,
    command: Sequence[str] = (),
    out: Path | None = None,
    wanted: FigureFiles = DEFAULT,
    as_json: bool = False,
) -> int:
    """Answer a question; returns the exit code.

    Parameters
    ----------
    question : Question
        What is asked.
    command : sequence of str, optional
        What asks it again, after "policysim", for the manifest.
    out : Path, optional
        Where files go; among the reports, under the question's name, by default.
    wanted : FigureFiles, optional
        The figure files.
    as_json : bool, optional
        Print one JSON document in place of the screen.

    Raises
    ------
    OutputError
        If the folder cannot be written, or another run is writing to it; found out before anything is computed where
        the question surely writes.
    """
    folder = REPORTS / question.name if out is None else out
    with ExitStack() as claims:
        if question.writes:
            claims.enter_context(alone_in(folder))
        with progress_bar(question.unit) as progress:
            answer = question.answer(progress)
            files = folder_files(answer, command, wanted, folder, progress)
        if files and not question.writes:
            claims.enter_context(alone_in(folder))
        _refuse_to_replace(folder, answer.files)
        write_files(folder, files)
    paths = {label: (folder / name).as_posix() for label, name in answer.named.items()}
    if as_json:
        manifest = {"manifest": manifest_of(answer, command, files)} if MANIFEST in files else {}
        print_json({**manifest, **answer.document, **{_key(label): path for label, path in paths.items()}})
    else:
        _print(answer, paths)
    return answer.exit_code


def _refuse_to_replace(folder: Path, kept: Mapping[str, bytes]) -> None:
    """OutputError if a study or scenario that no run of ours put there would be lost."""
    for name, content in kept.items():
        path = folder / name
        if path.exists() and not (folder / MANIFEST).exists() and path.read_bytes() != content:
            raise OutputError(f"{path} is there, and is another one than the report keeps: name another folder")


def _print(answer: Answer, paths: dict[str, str]) -> None:
    screen = (part for line in answer.screen for part in fitted(line))
    lines = [*screen, *(f"{label}: {path}" for label, path in paths.items())]
    sys.stdout.write("\n".join(lines) + "\n")


def _key(label: str) -> str:
    """Of a path in the JSON document: "Decision record" -> "decision_record"."""
    return label.lower().replace(" ", "_")
