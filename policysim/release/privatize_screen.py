"""What `policysim privatize` prints, as text and as a document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from policies.local import expected_errors
from policysim.question.screen_lines import cells, wrap
from policysim.release.privatize import Table
from policysim.release.privatize_note import Note, note_document, note_path

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
    """What the file is, what to beware of, and the estimated tables; at most 100 columns wide.

    With `true`, also the true counts, which are private.
    """
    lines = wrap(f"{path.as_posix()}: {note.n_rows:,} rows, {_done(note)}.")
    for warning in warnings(note):
        lines += wrap(f"! {warning}")
    for table in tables:
        rows = [
            [
                _label(table, row),
                _count(row["reports"]),
                _count(row["estimate"]),
                " to ".join(map(_count, row["interval"])),
            ]
            for row in _rows(table)
        ]
        lines += ["", *_lines(["Estimated from the private file", "reports", "estimate", "95 % interval"], rows)]
    lines += wrap(READING)
    if true:
        lines += ["", *wrap(NOT_PRIVATE)]
    for table in tables if true else ():
        rows = [
            [_label(table, row), _count(count), _count(row["estimate"]), _count(row["estimate"] - count)]
            for row, count in zip(_rows(table), table.truth.tolist(), strict=True)
        ]
        errors = {name: _count(value) for name, value in true_errors(table).items()}
        lines += [
            *_lines(["", "true", "estimate", "error"], rows),
            f"Errors in all: L1 {errors['l1']}, L2 {errors['l2']}; "
            f"expected: L1 {errors['expected_l1']}, L2 {errors['expected_l2']}.",
        ]
    return "\n".join([*lines, f"Note: {note_path(path).as_posix()}"])


def private_document(path: Path, note: Note, tables: Sequence[Table], *, true: bool = False) -> dict[str, Any]:
    """The same for --json; what is not private is below the key "not_private"."""
    document: dict[str, Any] = {
        "file": path.as_posix(),
        "note_file": note_path(path).as_posix(),
        "note": note_document(note),
        "warnings": warnings(note),
        "estimates": [{"columns": list(table.part.columns), "rows": _rows(table)} for table in tables],
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
    each = [
        f"at ε = {part.channel.epsilon:g}, {part.channel.name} response over {part.channel.n_values:,} values"
        for part in plan.parts
    ]
    if len(plan.parts) == 1:
        columns = plan.parts[0].columns
        return f"{' and '.join(columns)} privatised{' jointly' if len(columns) > 1 else ''} {each[0]}"
    named = "; ".join(f"{part.columns[0]} {how}" for part, how in zip(plan.parts, each, strict=True))
    return f"privatised separately at ε = {plan.epsilon:g} in all: {named}"


def _rows(table: Table) -> list[dict[str, Any]]:
    """What is known of each value, in rows of the file."""
    found, n = table.estimate, table.estimate.n
    numbers = zip(found.shares.tolist(), found.standard_errors.tolist(), found.interval.tolist(), strict=True)
    return [
        {
            "levels": list(label),
            "reports": reports,
            "estimate": share * n,
            "standard_error": error * n,
            "interval": [low * n, high * n],
        }
        for label, reports, (share, error, (low, high)) in zip(
            table.labels, table.reports.tolist(), numbers, strict=True
        )
    ]


def _lines(heading: list[str], rows: list[list[str]]) -> list[str]:
    lines = [cells(row, COLUMNS) for row in [heading, *rows[:ROWS_SHOWN]]]
    if len(rows) > ROWS_SHOWN:
        lines.append(f"... and {len(rows) - ROWS_SHOWN:,} more; --json lists all")
    return lines


def _label(table: Table, row: dict[str, Any]) -> str:
    text = ", ".join(f"{column} {level}" for column, level in zip(table.part.columns, row["levels"], strict=True))
    return text if len(text) < COLUMNS[0] else f"{text[: COLUMNS[0] - 2]}…"


def _count(value: float) -> str:
    # Adding 0 makes -0 of a rounded -0.3 plain 0.
    return f"{round(value) + 0:,}".replace("-", "−")
