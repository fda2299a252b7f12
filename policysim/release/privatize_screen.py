"""What `policysim privatize` prints, as text and as a document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from policies.local import expected_errors
from policysim.question.screen_lines import cells, wrap
from policysim.release.privatize import Table
from policysim.release.privatize_note import Note, Part, note_document, note_path

COLUMNS = (44, 12, 12, 26)
ROWS_SHOWN = 40
NOT_PRIVATE = "NOT PRIVATE: these come from the true rows and no ε covers them; guard them like the data itself."
READING = (
    "Estimates are unbiased: one below 0 means few or none. ε covers one row of these columns once: a second release "
    "of the same columns adds its ε. Rows keep their order, which is public: do not sort by a "
    "column that is to be hidden."
)


def true_errors(table: Table) -> dict[str, float]:
    """How far the estimates are from the true counts, in rows over all values, and how far is expected."""
    errors = table.estimate.shares * table.estimate.n - table.truth
    expected = expected_errors(table.truth, table.part.channel)
    return {
        "l1": float(np.abs(errors).sum()),
        "l2": float(np.sqrt(np.square(errors).sum())),
        "expected_l1": float(expected.l1),
        "expected_l2": float(expected.l2),
    }


def warnings(note: Note) -> list[str]:
    """What the reader must know before using the file."""
    lines = []
    if not note.release:
        lines.append("SIMULATION, not a release: whoever has the seed can undo it.")
    if note.earlier is not None:
        lines.append(note.earlier.warning)
    if note.plan.from_data:
        names = ", ".join(note.plan.from_data)
        lines.append(
            f"The levels of {names} were taken from the private rows: that reveals which values occur, and ε does not "
            "cover it. Declare them: --levels COLUMN=A,B."
        )
    if note.unchanged:
        lines.append(
            f"NOT privatised, unchanged: {', '.join(note.unchanged)}. They may also reveal the privatised ones."
        )
    return lines


def private_screen(path: Path, note: Note, tables: Sequence[Table], *, true: bool = False) -> str:
    """The screen: what the file is, what to beware of, and the estimated tables; at most 100 columns wide.

    Parameters
    ----------
    path : Path
        The private file, or the folder of many.
    note : Note
        Its note.
    tables : sequence of Table
        From `privatize_files` or `read_private`.
    true : bool
        Also show the true counts, which are private.
    """
    lines = wrap(f"{path.as_posix()}: {note.n_rows:,} rows, {_done(note)}.")
    for warning in warnings(note):
        lines += wrap(f"! {warning}")
    for table in tables:
        lines += ["", *_estimates(table)]
    lines += wrap(READING)
    if true:
        lines += ["", *wrap(NOT_PRIVATE), *(line for table in tables for line in _truth(table))]
    return "\n".join([*lines, f"Note: {note_path(path).as_posix()}"])


def private_document(path: Path, note: Note, tables: Sequence[Table], *, true: bool = False) -> dict[str, Any]:
    """The same for --json; what is not private is below the key "not_private"."""
    document: dict[str, Any] = {
        "file": path.as_posix(),
        "note_file": note_path(path).as_posix(),
        "note": note_document(note),
        "warnings": warnings(note),
        "estimates": [
            {
                "columns": list(table.part.columns),
                "rows": [
                    {
                        "levels": list(label),
                        "reports": int(reports),
                        "estimate": share * n,
                        "standard_error": error * n,
                        "interval": [low * n, high * n],
                    }
                    for label, reports, share, error, (low, high) in _rows(table)
                ],
            }
            for table in tables
            for n in (table.estimate.n,)
        ],
    }
    if true:
        document["not_private"] = {
            "warning": NOT_PRIVATE,
            "tables": [
                {"columns": list(table.part.columns), "true": table.truth.tolist(), **true_errors(table)}
                for table in tables
            ],
        }
    return document


def _done(note: Note) -> str:
    """What was done, in words."""
    plan = note.plan
    if len(plan.parts) == 1:
        part = plan.parts[0]
        how = " jointly" if len(part.columns) > 1 else ""
        return f"{' and '.join(part.columns)} privatised{how} at ε = {plan.epsilon:g}, {_response(part)}"
    each = "; ".join(f"{part.columns[0]} at ε = {part.channel.epsilon:g}, {_response(part)}" for part in plan.parts)
    return f"privatised separately at ε = {plan.epsilon:g} in all: {each}"


def _response(part: Part) -> str:
    return f"{part.channel.name} response over {part.channel.n_values:,} values"


def _rows(table: Table) -> list[tuple[tuple[str, ...], int, float, float, tuple[float, float]]]:
    found = table.estimate
    ends = [(low, high) for low, high in found.interval.tolist()]
    return list(
        zip(
            table.labels,
            table.reports.tolist(),
            found.shares.tolist(),
            found.standard_errors.tolist(),
            ends,
            strict=True,
        )
    )


def _estimates(table: Table) -> list[str]:
    n = table.estimate.n
    heading = cells(["Estimated from the private file", "reports", "estimate", "95 % interval"], COLUMNS)
    rows = [
        cells([_label(table, label), _count(reports), _count(share * n), _range(low * n, high * n)], COLUMNS)
        for label, reports, share, _, (low, high) in _rows(table)
    ]
    return [heading, *_few(rows)]


def _truth(table: Table) -> list[str]:
    n, errors = table.estimate.n, true_errors(table)
    rows = [
        cells([_label(table, label), _count(true), _count(share * n), _count(share * n - true)], COLUMNS)
        for (label, _, share, _, _), true in zip(_rows(table), table.truth.tolist(), strict=True)
    ]
    total = (
        f"Errors in all: L1 {_count(errors['l1'])}, L2 {_count(errors['l2'])}; "
        f"expected: L1 {_count(errors['expected_l1'])}, L2 {_count(errors['expected_l2'])}."
    )
    return [cells(["", "true", "estimate", "error"], COLUMNS), *_few(rows), total]


def _label(table: Table, label: Sequence[str]) -> str:
    text = ", ".join(f"{column} {level}" for column, level in zip(table.part.columns, label, strict=True))
    return text if len(text) < COLUMNS[0] else f"{text[: COLUMNS[0] - 2]}…"


def _few(rows: list[str]) -> list[str]:
    if len(rows) <= ROWS_SHOWN:
        return rows
    return [*rows[:ROWS_SHOWN], f"... and {len(rows) - ROWS_SHOWN:,} more; --json lists all"]


def _count(value: float) -> str:
    # Adding 0 makes -0 of a rounded -0.3 plain 0.
    return f"{round(value) + 0:,}".replace("-", "−")


def _range(low: float, high: float) -> str:
    return f"{_count(low)} to {_count(high)}"
