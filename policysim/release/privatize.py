"""Privatise columns of a file, or of a folder of files, row by row, and estimate true counts from what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.local import Estimate, estimate
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.columns_writer import open_writer
from policysim.files.csv_format import RECOGNISED, CsvFormat
from policysim.files.many_files import CSV, csv_name, kind_of
from policysim.files.whole_files import keep_closed, sync
from policysim.numbers import enough, inert
from policysim.progress import SILENT, Progress
from policysim.release.delivery import Draw, note_path, release_files
from policysim.release.exact import TOTAL, WordSource, response_draw, system_words
from policysim.release.ledger import Ledger, Release, amount
from policysim.release.people import People
from policysim.release.privatize_note import DATA, RELEASE, UNDONE, Part, Randomization, note_document, read_note
from policysim.release.privatize_source import Codes, Source, open_source
from policysim.words import cells, wrapped

COLUMNS = (38, 10, 12, 13, 23)
ROWS_SHOWN = 40
PERSON = "A person has at most {rows_per_person} rows, and ε = {epsilon_of_person:g} hides all of them."
ESTIMATES = (
    "Unbiased estimates are right on average: one below zero means few or none. Consistent ones are the counts ≥ 0 "
    "that sum to all rows and make the reports likeliest (maximum likelihood): on average too high for rare levels, "
    "too low for common ones. ε covers one row of these columns once: every other release about the same people adds "
    "its ε. Rows keep their order, which is public: do not sort by a hidden column."
)
NOT_PRIVATE = "NOT PRIVATE: these come from the true rows and no ε covers them; guard them like the data itself."


class Table:
    """How many rows hold each value of one part of a plan.

    Attributes
    ----------
    part : Part
    labels : list of tuple of str
        The level of each column, for each value, (k,).
    reports : array, (k,)
        Rows of the private file per value.
    truth : array, (k,)
        Rows with true values: private. 0 where only the private file was read.
    """

    def __init__(self, part: Part, counts: Sequence[Sequence[int]] | int = 0) -> None:
        """Begin with these reports and true counts, (2, k); by default at 0."""
        self.part = part
        self.labels = list(product(*part.levels.values()))
        self.reports, self.truth = np.zeros((2, len(self.labels)), dtype=np.intp) + np.asarray(counts)
        self._sizes = tuple(map(len, part.levels.values()))

    def draw(self, codes: dict[str, IntArray], words: WordSource) -> dict[str, IntArray]:
        """Private codes in place of the true ones, counted."""
        values, channel = self._joined(codes), self.part.channel
        self.truth += np.bincount(values, minlength=len(self.labels))
        reports = np.unravel_index(response_draw(values, channel.n_values, channel.epsilon, words), self._sizes)
        private = dict(zip(self.part.levels, reports, strict=True))
        self.count(private)
        return private

    def count(self, codes: dict[str, IntArray]) -> None:
        """Add reports."""
        self.reports += np.bincount(self._joined(codes), minlength=len(self.labels))

    def _joined(self, codes: dict[str, IntArray]) -> IntArray:
        joined: IntArray = np.ravel_multi_index([codes[column] for column in self.part.levels], self._sizes)
        return joined

    @cached_property
    def estimate(self) -> Estimate:
        """Unbiased shares of the true values with 95 % intervals, when all reports are counted."""
        return estimate(self.reports, self.part.channel)

    @cached_property
    def consistent(self) -> FloatArray:
        """The most likely shares of the true values, (k,): >= 0, and they sum to 1."""
        return estimate(self.reports, self.part.channel, method="maximum-likelihood").shares


def privatize_files(
    source: Source,
    out: Path,
    plan: Randomization,
    *,
    seed: int | None = None,
    ledger: Ledger | None = None,
    people: People | None = None,
    progress: Progress = SILENT,
) -> tuple[dict[str, Any], list[Table]]:
    """Write a copy of a file, or of a folder, whose private columns hold reports, and a note beside it.

    All files are one release: one note, one entry in the ledger, one epsilon for a row. Until the end, what is drawn
    stands in a folder that only its owner may enter; true values of private columns are written nowhere.

    Parameters
    ----------
    out : Path
        Of one file: ends in .csv for text, in .parquet for Parquet, and is not it. Of a folder: a folder, in which each
        file keeps its name, but for these endings. Of a simulation, and of nothing else, its name ends in .simulated,
        or .simulated.csv. Text is written in UTF-8, with commas between columns and decimal points.
    seed : int, optional
        For a simulation. By default the operating system's randomness, for a release.
    ledger : Ledger, optional
        Counts the release; nobody does by default.
    people : People, optional
        Whose rows they are; by default each is a person's.

    Returns
    -------
    dict, list of Table
        The note, and a table for each part of the plan, of all files together. True counts in them are private.

    Raises
    ------
    DataError
        If a file cannot be read, or changes on the way; if there are no rows, or rows outside of the levels.
    OutputError
        If nothing can be written, or something is there; as BudgetError, for a release beyond the budget.
    """
    people = people or People()
    for column, levels in plan.levels.items() if CSV in {kind_of(file.path) for file in source.files} else ():
        if any(inert(text) != text for text in (column, *levels)):
            must = "begins with =, +, - or @, as formulas of spreadsheets do: name it otherwise, or use .parquet"
            raise DataError(f"{column}: the column or one of its levels {must}")
    answer = release_files(
        source,
        out,
        "" if source.several else kind_of(source.path),
        seed=seed,
        ledger=ledger,
        asked=("values", plan, people.id, source.dialects),
        draw=partial(_draw, source, plan=plan, people=people, seed=seed, progress=progress),
    )
    tables = list(map(Table, plan.parts, answer["counts"]))
    return answer["note"], tables


def words_of(seed: int | None) -> WordSource:
    """Random words of 62 bits: the operating system's, or a generator's, whose seed reveals the draw."""
    if seed is None:
        return system_words
    rng = np.random.default_rng(seed)
    return lambda size: rng.integers(TOTAL, size=size, dtype=np.uint64)


def _draw(
    source: Source, out: Path, *, plan: Randomization, people: People, seed: int | None, progress: Progress
) -> Draw:
    """Draw all files into one, or into a folder, and wait until they are on the disk."""
    tables, bad, n_rows, words = list(map(Table, plan.parts)), BadRows(), 0, words_of(seed)
    if source.several:
        out.mkdir()
    for file, steps in source.in_turn(progress):
        codes = Codes(file, plan.features, bad, people)
        target = out / csv_name(file.path) if source.several else out
        with open_writer(target, codes.schema, kind_of(file.path)) as writer:
            for batch in file.batches(progress=steps):
                read = codes.read(batch)
                if read is None:
                    continue
                private: dict[str, IntArray] = {}
                for table in tables:
                    private |= table.draw(read[1], words)
                writer.write(codes.replace(read[0], private))
        keep_closed(target, [file.path])
        sync(target)
        n_rows += codes.n_kept
    source.check_read(bad, people)
    if not n_rows:
        raise DataError(f"{source.path.as_posix()}: has no rows")
    if source.several:
        keep_closed(out, [source.path])
        sync(out)
    unchanged = source.unchanged(plan.levels)
    note = note_document(plan, unchanged, n_rows, release=seed is None)
    return Draw(
        {"note": note, "counts": [[table.reports.tolist(), table.truth.tolist()] for table in tables]},
        Release(
            "privatize",
            source.path.resolve().name,
            amount(plan.epsilon_of_person),
            tuple(plan.levels),
            unchanged,
            shows_rows=True,
            each=bool(people.id),
            details={"released": out.name, **({"not covered": "which values occur"} if plan.from_data else {})},
        ),
        people.digests,
    )


def read_private(
    path: Path, progress: Progress = SILENT, stated: CsvFormat = RECOGNISED
) -> tuple[dict[str, Any], list[Table]]:
    """Estimate the true counts from a private file, or a folder of them, and the note beside it.

    Raises
    ------
    DataError
        If the note is missing or does not fit: a column that is not in the file, other levels, another number of rows.
    """
    plan, note = read_note(path)
    tables, bad, n_rows = list(map(Table, plan.parts)), BadRows(), 0
    for file, steps in open_source(path, stated).in_turn(progress):
        for column in plan.levels:
            if column not in file.schema.names:
                raise DataError(f"{file.path.as_posix()}: does not fit its note, which names a column {column!r}")
        codes = Codes(file, plan.features, bad)
        for batch in file.batches(list(plan.levels), steps):
            read = codes.read(batch)
            if read is not None:
                for table in tables:
                    table.count(read[1])
        n_rows += codes.n_rows
    bad.raise_if_any()
    if n_rows != note["rows"]:
        said = f"it has {n_rows:,} rows, the note says {note['rows']:,}"
        raise DataError(f"{path.as_posix()}: does not fit its note: {said}")
    return note, tables


def private_document(
    path: Path, note: dict[str, Any], tables: Sequence[Table], *, true: bool = False
) -> dict[str, Any]:
    """What is published, what to beware of, and the estimates in rows of the file.

    With `true`, also the true counts: what is not private stands below the key "not_private".
    """
    warnings, estimates = [], []
    if note["drawn"] != RELEASE:
        warnings.append(UNDONE)
    from_data = [column["name"] for column in note["columns"] if column["levels_from"] == DATA]
    if from_data:
        warnings.append(
            f"The levels of {', '.join(from_data)} were taken from the private rows: that reveals which "
            "values occur, and ε does not cover it. Declare them: --levels COLUMN=A,B."
        )
    if note["unchanged"]:
        warnings.append(
            f"NOT privatised, unchanged: {', '.join(note['unchanged'])}. They may also reveal the privatised ones."
        )
    for table in tables:
        found, n = table.estimate, table.estimate.n
        shares = (found.shares, table.consistent, found.standard_errors, found.interval)
        rows = zip(table.labels, table.reports.tolist(), *((n * share).tolist() for share in shares), strict=True)
        names = ("levels", "reports", "estimate", "consistent_estimate", "standard_error", "interval")
        estimates.append(
            {"columns": list(table.part.levels), "rows": [dict(zip(names, row, strict=True)) for row in rows]}
        )
    document: dict[str, Any] = {
        "file": path.as_posix(),
        "note_file": note_path(path).as_posix(),
        "note": note,
        "warnings": warnings,
        "estimates": estimates,
    }
    if true:
        true_counts = [{"columns": list(table.part.levels), "true": table.truth.tolist()} for table in tables]
        document["not_private"] = {"warning": NOT_PRIVATE, "tables": true_counts}
    return document


def private_screen(document: dict[str, Any]) -> str:
    """The same as a screen."""
    note, private = document["note"], document.get("not_private")
    channels = "; ".join(
        f"{' and '.join(channel['columns'])} by {channel['mechanism']} response over "
        f"{channel['parameters']['n_values']:,} values (ε = {enough(channel['epsilon'], 6):g})"
        for channel in note["channels"]
    )
    epsilon = f"{enough(note['epsilon'], 6):g}"
    lines = wrapped(
        f"{document['file']}: {note['rows']:,} rows, each privatised at ε = {epsilon}: {channels}.",
        *([PERSON.format(**note)] if "rows_per_person" in note else []),
        *(f"! {warning}" for warning in document["warnings"]),
    )
    for table in document["estimates"]:
        shown = [
            [
                *(_count(row[name]) for name in ("reports", "estimate", "consistent_estimate")),
                " to ".join(map(_count, row["interval"])),
            ]
            for row in table["rows"]
        ]
        heading = ["Estimated from the private file", "reports", "unbiased", "consistent", "95 % interval"]
        lines += ["", *_lines(heading, table, shown)]
    lines += wrapped(ESTIMATES)
    if private:
        lines += ["", *wrapped(private["warning"])]
        for table, counted in zip(document["estimates"], private["tables"], strict=True):
            shown = [
                [_count(count), _count(row["estimate"]), _count(row["estimate"] - count)]
                for row, count in zip(table["rows"], counted["true"], strict=True)
            ]
            lines += _lines(["", "true", "estimate", "error"], table, shown)
    return "\n".join([*lines, f"Note: {document['note_file']}", ""])


def _lines(heading: list[str], table: dict[str, Any], shown: list[list[str]]) -> list[str]:
    widths = COLUMNS[: len(heading)]
    lines = [cells(heading, widths)]
    for row, numbers in zip(table["rows"][:ROWS_SHOWN], shown, strict=False):
        label = ", ".join(f"{column} {level}" for column, level in zip(table["columns"], row["levels"], strict=True))
        lines.append(cells([label if len(label) < COLUMNS[0] else f"{label[: COLUMNS[0] - 2]}…", *numbers], widths))
    if len(shown) > ROWS_SHOWN:
        lines.append(f"... and {len(shown) - ROWS_SHOWN:,} more; --json lists all")
    return lines


def _count(value: float) -> str:
    # Adding 0 makes -0 of a rounded -0.3 plain 0.
    return f"{round(value) + 0:,}".replace("-", "−")
