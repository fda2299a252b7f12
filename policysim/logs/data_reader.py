"""The table [data] of a study file, read into a `LogSource`; `data_keys.toml` declares its keys."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from envs.toml_reader import Table, declared
from policysim.files.bad_rows import DataError, level_key
from policysim.files.many_files import ENDINGS, is_many, parts_of
from policysim.logs.log_source import (
    ACTIONS,
    CHECK,
    EQUAL,
    ESTIMATE,
    JOINT,
    LOGISTIC,
    MISSING_BY_LEVEL,
    MISSING_CHOICES,
    MOST_RECORDS,
    OUTCOME_MODELS,
    TABLE,
    THREE_TABLES,
    Binning,
    FollowUp,
    LogSource,
    cuts_wrong,
    default_range,
    levels_wrong,
)

# Stands for a feature whose declaration cannot be used, so that its name is known.
PLACEHOLDER = (0, 1)
FOLLOW_UP = ("time", "event", "horizon")

KEYS = declared(Path(__file__).with_name("data_keys.toml"))


def read_data(table: Table, folder: Path) -> LogSource:
    """Read a study's table [data]; every mistake is noted in the table, with its line.

    Parameters
    ----------
    table : Table
        The table [data] itself, of the `KEYS`.
    folder : Path
        The study file's folder: files are named relative to it.

    Returns
    -------
    LogSource
        If there were mistakes, to be used for nothing but the names of its features, so that more can be found.
    """
    table.names.update(missing=MISSING_CHOICES, models=OUTCOME_MODELS)
    files, parts = _files(table, folder)
    joined = _joined(table)
    without = "treatment" not in table and ACTIONS in files
    follow_up = _follow_up(table)
    outcome = _shown(table) if follow_up else _outcome(table)
    source = LogSource(
        files=files,
        treatment=JOINT.join(joined) or ("" if without else table["treatment"]),
        treatments=_treatments(table["treatments"]),
        propensity=table["propensity"],
        outcome=outcome,
        utility_range=_unit_range(table) if follow_up else _range(table, outcome),
        missing=table["missing"],
        id=table["id"],
        outcome_model=table["model"],
        features=_features(table),
        joined=joined,
        header=table["header"],
        outcome_checked=_checked(table, outcome),
        study=table.mistakes.path,
        unread=sum(CHECK in line for line in table.mistakes.text.splitlines()),
        follow_up=follow_up,
        outcome_title=table["outcome_title"],
        parts=parts,
    )
    _refuse_two_uses(table, source)
    _check_model(table, source)
    table.close()
    return source


def _files(table: Table, folder: Path) -> tuple[dict[str, Path], tuple[Path, ...]]:
    """One path under `file`, or a table of three; and the files of one table: a folder's, a pattern's, or a list."""
    given = table.values.get("file")
    if isinstance(given, dict):
        section = table["file"]
        files = {name: _path(section, name, folder) for name in THREE_TABLES}
        section.close()
        return files, ()
    if isinstance(given, list):
        names = table.list_of("file", lambda name: isinstance(name, str) and name != "", "a file", [])
        parts = tuple(_file(table, str(name), folder, place) for place, name in enumerate(names))
        # However they are spelt: its rows would count twice.
        places = [part.resolve() for part in parts]
        for place, part in enumerate(places):
            if part in places[:place]:
                table.fail(f"names {names[place]!r} twice", "file", place)
        return {TABLE: parts[0] if parts else folder}, parts
    name = table.text("file")
    path = folder / name
    if name and is_many(path):
        try:
            parts = parts_of(path)
        except DataError as error:
            table.fail(str(error), "file")
            return {TABLE: path}, ()
        return {TABLE: path if len(parts) > 1 else parts[0]}, parts
    found = _path(table, "file", folder)
    return {TABLE: found}, (found,)


def _path(table: Table, key: str, folder: Path) -> Path:
    name = table.text(key)
    return _file(table, name, folder, key) if name else folder / name


def _file(table: Table, name: str, folder: Path, key: str | int) -> Path:
    """A file that is there; `key` is where the table names it, a number in the list `file`."""
    path, where = folder / name, ("file", key) if isinstance(key, int) else (key,)
    if path.suffix.lower() not in ENDINGS:
        table.fail(f"must end in .csv or .parquet, got {name!r}", *where)
    elif not path.is_file():
        table.fail(f"there is no file {path.as_posix()}", *where)
    return path


def _joined(table: Table) -> tuple[str, ...]:
    """The columns that make the treatment together; () where it is one column."""
    if not isinstance(table.values.get("treatment"), list):
        return ()
    names = table.list_of("treatment", lambda name: isinstance(name, str) and name != "", "a column", [])
    for position, name in enumerate(names):
        if name in names[:position]:
            table.fail(f"names {name!r} twice", "treatment", position)
    if len(names) == 1:
        table.fail(f"one column needs no list: treatment = {names[0]!r}", "treatment")
    return tuple(names)


def _treatments(table: Table) -> tuple[tuple[str, str], ...]:
    """Value and name of each; distinct, and at least two if any."""
    found: list[tuple[str, str]] = []
    values: dict[object, str] = {}
    for value in table.values:
        name = table.text(value)
        key = level_key(value)
        if not name.strip():
            table.fail("must be a name, not empty", value)
        elif name in [other for _, other in found]:
            table.fail(f"two treatments are named {name!r}", value)
        if key in values:
            table.fail(f"is the same value as {values[key]!r}", value)
        values.setdefault(key, value)
        found.append((value, name))
    if len(found) == 1:
        table.fail("a choice needs at least two treatments")
    return tuple(found)


def _outcome(table: Table) -> dict[str, float]:
    if "outcome" not in table:
        table.fail("outcome is missing: it must be a table of columns and weights, such as { success = 1.0 }")
    outcome = _weights(table["outcome"])
    if "outcome" in table and not any(outcome.values()):
        table.fail(
            "needs a column with a weight other than 0, such as { success = 1.0 }, or { death = -1.0 } where 1 is "
            "harm, and which is none of the features",
            "outcome",
        )
    return outcome


def _weights(section: Table) -> dict[str, float]:
    return {column: section.number(column) for column in section.values}


def _follow_up(table: Table) -> FollowUp | None:
    """Time, event and horizon, which go together; None without any of them."""
    time, event, horizon = (table[key] for key in FOLLOW_UP)
    there = [key for key in FOLLOW_UP if key in table]
    for key in FOLLOW_UP:
        if there and key not in there:
            table.fail(f"{key} is missing: time, event and horizon go together")
    if not horizon > 0:
        table.fail(f"must be > 0, got {horizon:g}", "horizon")
    return FollowUp(time, event, horizon) if there else None


def _shown(table: Table) -> dict[str, float]:
    """Columns that are shown beside being free of the event, which is the outcome."""
    outcome = _weights(table["outcome"])
    for column, weight in outcome.items():
        if weight:
            table.fail(
                "must be 0: with time, event and horizon the outcome is to be free of the event at the horizon, and "
                "other columns are only shown",
                "outcome",
                column,
            )
    return dict.fromkeys(outcome, 0.0)


def _unit_range(table: Table) -> tuple[float, float]:
    """The range of an outcome of 0 and 1."""
    if table.values.get("range", [0, 1]) != [0, 1]:
        table.fail("is [0, 1] with time, event and horizon: leave it out", "range")
    return 0.0, 1.0


def _checked(table: Table, outcome: Mapping[str, float]) -> tuple[str, ...]:
    """Outcomes that are taken whatever they look like."""
    listed = table.list_of("outcome_checked", lambda value: value in outcome, f"one of {', '.join(outcome)}", [])
    return tuple(map(str, listed))


def _range(table: Table, outcome: Mapping[str, float]) -> tuple[float, float]:
    if "range" not in table:
        return default_range(outcome)
    ends = table["range"]
    if isinstance(table.values["range"], list) and (len(ends) != 2 or not ends[0] < ends[1]):
        table.fail(f"must be [lowest, highest] reward, got {table.values['range']!r}", "range")
    return (float(ends[0]), float(ends[1])) if len(ends) == 2 else (0.0, 1.0)


def _features(table: Table) -> dict[str, Binning]:
    if not isinstance(table.values.get("features", {}), dict) or not table.values.get("features"):
        table.fail("features are missing: [data.features] must declare at least one, such as sex = { levels = [0, 1] }")
    section = table["features"]
    features = {name: _binning(name, entry) for name, entry in section.subtables()}
    shape = [len(binning.feature.levels) for binning in features.values()]
    if math.prod(shape) > MOST_RECORDS:
        section.fail(
            f"{' × '.join(map(str, shape))} = {math.prod(shape):,} records are declared, at most {MOST_RECORDS:,} are "
            "possible: declare fewer features, or coarser ones"
        )
    return features


def _binning(name: str, entry: Table) -> Binning:
    """One feature; a placeholder if something is wrong with it."""
    before = len(entry.mistakes.found)
    if ("levels" in entry) == ("cuts" in entry):
        entry.fail("must be { levels = [...] } or { cuts = [...] }")
    levels, cuts, gaps = entry["levels"], entry["cuts"], entry["missing"]
    if gaps and "levels" in entry:
        entry.fail(MISSING_BY_LEVEL, "missing")
    entry.close()
    if len(entry.mistakes.found) == before:
        for key, values, wrong in (("levels", levels, levels_wrong(levels)), ("cuts", cuts, cuts_wrong(cuts))):
            for position, reason in wrong:
                entry.fail(f"{values[position]!r} {reason}", key, position)
        if len(levels) == 1:
            entry.fail("needs at least two levels", "levels")
    if len(entry.mistakes.found) > before:
        return Binning(name, PLACEHOLDER)
    return Binning(name, tuple(levels), tuple(cuts), gaps)


def _check_model(table: Table, source: LogSource) -> None:
    """A logistic regression predicts one outcome of 0 and 1."""
    weights = [1] if source.follow_up else [weight for weight in source.outcome.values() if weight]
    if source.outcome_model == LOGISTIC and weights and weights != [1]:
        table.fail(
            f'"{LOGISTIC}" predicts rewards of 0 and 1: it needs exactly one outcome of weight 1, others of weight 0',
            "model",
        )


def _refuse_two_uses(table: Table, source: LogSource) -> None:
    """A column is one thing: no feature is known before treatment that is the treatment or its outcome."""
    if not source.header and TABLE not in source.files:
        return  # the same place in three files names three columns
    uses = dict.fromkeys(source.joined or [source.treatment], "treatment") | {source.id: "id"}
    uses |= {} if source.propensity in (EQUAL, ESTIMATE) else {source.propensity: "propensity"}
    if source.follow_up:
        for key, column in (("time", source.follow_up.time), ("event", source.follow_up.event)):
            if column in uses and column:
                table.fail(f"{column!r} is the {uses[column]} already: name another column", key)
            uses |= {column: key}
    for column in source.outcome:
        if column in uses and column:
            table.fail(f"{column!r} is the {uses[column]} already: name a column of results", "outcome", column)
    uses |= dict.fromkeys(source.outcome, "outcome")
    for name in source.features:
        if name in uses and name:
            out = "; leave it out of the features, or name another outcome" if name in source.outcome else ""
            table.fail(
                f"{name!r} is the {uses[name]} already: a feature must be known before treatment{out}", "features", name
            )
