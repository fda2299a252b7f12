"""The table [data] of a study file, read into a LogSource; every mistake is noted with its line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from envs.records import Feature
from envs.toml_reader import FINITE, TomlTable, is_finite, require_file, shown, unknown
from policies.levels import MISSING, NO_VALUE, level_key, level_of, repeated
from policysim.files.bad_rows import DataError
from policysim.files.csv_format import CHECKS, CsvFormat
from policysim.files.many_files import READABLE, files_of, is_many, kind_of
from policysim.logs.log_source import (
    ACTIONS,
    CHECK,
    COMPETING,
    FOLLOW_UP,
    JOINT,
    LINEAR,
    LOGISTIC,
    MISSING_CHOICES,
    MOST_RECORDS,
    OUTCOME_MODELS,
    REFUSE,
    STATE_KEYS,
    TABLE,
    THREE_TABLES,
    ZERO_ONE,
    FollowUp,
    LogSource,
    coded_outcome,
    declared_values,
    is_column,
    unknown_of,
)

LEVEL_WANTED = "a number or text in quotes"
# Numbers of records above this are shown by their power of ten.
LARGEST_SHOWN = 10**15


def read_data(table: TomlTable, folder: Path) -> LogSource:
    """Read a study's table [data]; every mistake is noted in the table, with its line.

    Parameters
    ----------
    table : Table
        The table [data] itself.
    folder : Path
        The study file's folder: files are named relative to it.

    Returns
    -------
    LogSource
        If there were mistakes, to be used for nothing but the names of its features, so that more can be found.
    """
    files, parts = _files(table, folder)
    joined = _joined(table)
    without = "treatment" not in table and ACTIONS in files
    follow_up = _follow_up(table)
    outcome, codes = _outcome(table, follow_up)
    treatments = _treatments(table.table("treatments"))
    guesses = [line for line in table.file.text.splitlines() if CHECK in line]
    source = LogSource(
        files=files,
        treatment=JOINT.join(joined) or ("" if without else table.column("treatment")),
        treatments=treatments,
        propensity=_propensity(table, treatments),
        outcome=outcome,
        utility_range=(0.0, 1.0),
        missing=table.choice("missing", MISSING_CHOICES, REFUSE),
        id=table.column("id", ""),
        outcome_model=table.choice("model", OUTCOME_MODELS, LINEAR),
        features=_features(table),
        joined=joined,
        form=read_format(table),
        adjust_for=table.names("adjust_for", None, "column"),
        outcome_checked=table.names("outcome_checked", list(outcome), "outcome"),
        study=table.file.path,
        unread=len(guesses),
        guessed_range=any(line.startswith("range") for line in guesses),
        follow_up=follow_up,
        outcome_title=table.column("outcome_title", ""),
        public=table.flag("public", default=False),
        parts=parts,
        cluster=table.column("cluster", ""),
        codes=codes,
    )
    unknown_values = _unknown(table, source)
    features = {
        name: replace(feature, unknown=unknown_values.get(name, ())) for name, feature in source.features.items()
    }
    source = replace(source, utility_range=_range(table, source), unknown=unknown_values, features=features)
    _refuse_two_uses(table, source)
    _refuse_logistic(table, source)
    if source.repeats and TABLE not in files:
        table.fail("three files are joined by id, which must be unique in each: join them into one first", "cluster")
    return source


def _refuse_logistic(table: TomlTable, source: LogSource) -> None:
    """A logistic model goes with one outcome of 0 and 1, or with being free of an event."""
    weights = [1] if source.follow_up else [weight for weight in source.outcome.values() if weight]
    codes = {number for numbers in source.codes.values() for number in numbers.values()}
    if source.outcome_model == LOGISTIC and weights and (weights != [1] or not codes <= {0, 1}):
        table.fail(
            f'"{LOGISTIC}" predicts rewards of 0 and 1: it needs exactly one outcome of weight 1, others of weight 0',
            "model",
        )


def _files(table: TomlTable, folder: Path) -> tuple[dict[str, Path], tuple[Path, ...]]:
    """One path under `file`, or a table of three; and the files of one table: a folder's, a pattern's, or a list."""
    stated = table.values.get("file")
    if isinstance(stated, dict):
        section = table.table("file")
        return {name: _file(section, section.column(name), folder, name) for name in THREE_TABLES}, ()
    if isinstance(stated, list):
        names = table.words("file", wanted="a file")
        parts = tuple(_file(table, name, folder, "file", position) for position, name in enumerate(names))
        # However they are spelt: its rows would count twice.
        for position, _, _ in repeated(parts, Path.resolve):
            table.fail(f"names {names[position]!r} twice", "file", position)
        return {TABLE: parts[0] if parts else folder}, parts
    name = table.column("file")
    if name and is_many(folder / name):
        try:
            parts = files_of(folder / name)
        except DataError as error:
            table.fail(str(error), "file")
            parts = ()
        return {TABLE: parts[0] if len(parts) == 1 else folder / name}, parts
    path = _file(table, name, folder, "file")
    return {TABLE: path}, (path,)


def _file(table: TomlTable, name: str, folder: Path, *key: str | int) -> Path:
    """The path of a file that the table names at `key`, and that is there."""
    path = folder / name
    if name and not kind_of(path):
        table.fail(f"must end in {READABLE}, got {name!r}", *key)
    elif name:
        try:
            require_file(path)
        except FileNotFoundError:
            table.fail(f"there is no file {path.as_posix()}", *key)
        except OSError as error:
            table.fail(f"{path.as_posix()}: cannot be read: {error.strerror}", *key)
    return path


def read_format(table: TomlTable) -> CsvFormat:
    """How a table in text is written, as far as a study states it."""
    stated = {key: table.column(key, "") for key in CHECKS}
    for key, check in CHECKS.items():
        try:
            stated[key] and check(stated[key])
        except ValueError as error:
            table.fail(str(error), key)
            stated[key] = ""
    return CsvFormat(table.flag("header", default=True), **stated)


def _joined(table: TomlTable) -> tuple[str, ...]:
    """The columns that make the treatment together; () where it is one column."""
    if not isinstance(table.values.get("treatment"), list):
        return ()
    names = table.words("treatment", wanted="a column")
    for position, name, _ in repeated(names, str):
        table.fail(f"names {name!r} twice", "treatment", position)
    if len(names) == 1:
        table.fail(f"one column needs no list: treatment = {names[0]!r}", "treatment")
    return tuple(names)


def _treatments(table: TomlTable) -> tuple[tuple[str, str], ...]:
    """Value and name of each; distinct, and at least two if any."""
    names = {value: table.text(value) for value in table}
    for value in [value for value, name in names.items() if not name.strip()]:
        table.fail("must be a name, not empty", value)
    for _, value, earlier in repeated(names):
        table.fail(f"is the same value as {earlier!r}", value)
    if len(set(names.values())) == 1:
        table.fail("a choice needs at least two treatments")
    return tuple(names.items())


def _propensity(table: TomlTable, treatments: Sequence[tuple[str, str]]) -> str | tuple[float, ...]:
    """A word, a column, or the ratio in which treatments were given, in their order."""
    if not isinstance(table.values.get("propensity"), dict):
        return table.column("propensity")
    names = list(dict.fromkeys(name for _, name in treatments))
    if not names:
        table.fail("a ratio needs [data.treatments], whose names it has", "propensity")
    ratio = table.numbers("propensity", names or list(table.values["propensity"]), "treatment")
    for name, number in ratio.items():
        if not (number > 0 or table.wrong("propensity", name)):
            table.fail(f"must be > 0, got {number:g}", "propensity", name)
    for name in names:
        if name not in ratio:
            table.fail(f"has no number for the treatment {name!r}", "propensity")
    return tuple(ratio.get(name, 1.0) for name in names)


def _follow_up(table: TomlTable) -> FollowUp | None:
    """Time, event and horizon, which go together; None without any of them."""
    time, (event, codes), horizons = table.column("time", ""), read_event(table), _horizons(table)
    there = [key for key in FOLLOW_UP if key in table]
    for key in FOLLOW_UP:
        if there and key not in there:
            table.fail(f"{key} is missing: time, event and horizon go together")
    return FollowUp(time, event, horizons, codes) if there else None


def _horizons(table: TomlTable) -> tuple[float, ...]:
    """One horizon, or a list of different ones."""
    several = isinstance(table.values.get("horizon"), list)
    wanted = f"a finite number within ±{FINITE:g}"
    stated = table.list_of("horizon", is_finite, wanted) if several else [table.number("horizon", 1.0)]
    for position, horizon in enumerate(stated):
        if not horizon > 0:
            table.fail(f"must be > 0, got {horizon:g}", *(("horizon", position) if several else ("horizon",)))
    for position, horizon, _ in repeated(stated, float):
        table.fail(f"is {horizon:g} twice", "horizon", position)
    return tuple(map(float, stated)) or (1.0,)


def _outcome(table: TomlTable, follow_up: FollowUp | None) -> tuple[dict[str, float], dict[str, Mapping[str, float]]]:
    """Columns and weights, and what codes of columns mean; beside a follow-up others are only shown, with weight 0."""
    if "outcome" not in table and not follow_up:
        table.fail("outcome is missing: it must be a table of columns and weights, such as { success = 1.0 }")
    section = table.table("outcome")
    outcome: dict[str, float] = {}
    codes: dict[str, Mapping[str, float]] = {}
    for column in section:
        if isinstance(section.values[column], dict):
            outcome[column], codes[column] = read_coded(section.table(column))
        else:
            outcome[column] = section.number(column)
    if follow_up:
        for column in [column for column, weight in outcome.items() if weight]:
            table.fail(
                "must be 0: with time, event and horizon the outcome is to be free of the event at the horizon, and "
                "other columns are only shown",
                "outcome",
                column,
            )
        return dict.fromkeys(outcome, 0.0), {}
    if "outcome" in table and not any(outcome.values()) and not section.wrong():
        table.fail(
            "needs a column with a weight other than 0, such as { success = 1.0 }, or { death = -1.0 } where 1 is "
            "harm, and which is none of the features",
            "outcome",
        )
    return outcome, codes


def _unknown(table: TomlTable, source: LogSource) -> dict[str, tuple[str, ...]]:
    """The values of each column that mean unknown."""
    declared = declared_values(source)
    if not isinstance(table.values.get("unknown", {}), dict):
        # A time of 9 or 99 is a time; unless it is named as a column.
        times = [source.follow_up.time] if source.follow_up else []
        return unknown_of(dict.fromkeys([c for c in declared if c not in times], _values(table, "unknown")), declared)
    section = table.table("unknown")
    by_column = {column: _values(section, column) for column in section}
    for column, values in by_column.items():
        if column not in declared:
            section.fail(unknown("column", column, list(declared)), column)
        for position, value in enumerate(values):
            if level_key(value) in declared.get(column, ()):
                section.fail(f"{value!r} is declared: it cannot be unknown, too", column, position)
    return unknown_of(by_column, declared)


def _values(table: TomlTable, key: str) -> list[str | float]:
    """The values that mean unknown, at a key; those that are missing anyway need not be there."""
    values = table.list_of(key, is_level, LEVEL_WANTED)
    for position, value in enumerate(values):
        if level_key(value) == MISSING:
            table.fail(f"{value!r} is missing anyway: leave it out", key, position)
    return values


def _range(table: TomlTable, source: LogSource) -> tuple[float, float]:
    if source.follow_up:
        if "range" in table and table.values["range"] != [0, 1]:
            table.fail("is [0, 1] with time, event and horizon: leave it out", "range")
        return 0.0, 1.0
    if "range" not in table:
        return source.default_range
    ends = table.list_of("range", is_finite, f"a finite number within ±{FINITE:g}", [])
    if not table.wrong("range") and not (len(ends) == 2 and ends[0] < ends[1]):
        table.fail(f"must be [lowest, highest] reward, got {table.values['range']!r}", "range")
    return (float(ends[0]), float(ends[1])) if len(ends) == 2 else (0.0, 1.0)


def _features(table: TomlTable) -> dict[str, Feature]:
    section = table.table("features")
    if not section.values:
        table.fail("features are missing: [data.features] must declare at least one, such as sex = { levels = [0, 1] }")
    features = {name: read_feature(name, section.table(name)) for name in section}
    shape = [len(feature.levels) for feature in features.values()]
    size = math.prod(shape)
    if size > MOST_RECORDS:
        if size > LARGEST_SHOWN:  # of thousands of features; Python writes no number of so many digits
            records = f"about 10^{sum(map(math.log10, shape)):.0f}"
        else:
            records = f"{' × '.join(map(str, shape))} = {size:,}"
        section.fail(
            f"{records} records are declared, at most {MOST_RECORDS:,} are possible: declare fewer features, or "
            "coarser ones"
        )
    return features


def binned(name: str, cuts: Sequence[float], *, missing: bool = False) -> Feature:
    """A feature whose levels are bins of a number, named by their ends.

    Parameters
    ----------
    name : str
        The column.
    cuts : sequence of float
        Rising numbers. Cuts (28, 34) make three half-open bins, "< 28", "28 to < 34" and "≥ 34".
    missing : bool
        with `cuts`: `true` makes missing values a level "NA". In `levels`, `"NA"` stands for them

    Examples
    --------
    >>> binned("age", (28, 34), missing=True).levels
    ('< 28', '28 to < 34', '≥ 34', 'NA')
    """
    ends = [str(level_of(float(cut))) for cut in cuts]
    bins = [f"< {ends[0]}", *(f"{low} to < {high}" for low, high in pairwise(ends)), f"≥ {ends[-1]}"]
    return Feature(name, (*bins, *([NO_VALUE] if missing else [])), cuts=tuple(cuts))


def read_feature(name: str, table: TomlTable) -> Feature:
    """One feature of a study's table [data.features]: what cells are its levels, `policies.levels` says.

    If something is wrong with it, its name is known all the same.

    Keys
    ----
    levels
        all possible values
    cuts
        rising numbers: the bins are below the first, between two, and from the last on
    missing : false
        with `cuts`: `true` makes missing values a level "NA". In `levels`, `"NA"` stands for them
    """
    if ("levels" in table) == ("cuts" in table):
        table.fail("must be { levels = [...] } or { cuts = [...] }")
    levels = table.list_of("levels", is_level, LEVEL_WANTED, [])
    cuts = table.list_of("cuts", is_finite, "a finite number", [])
    missing = table.flag("missing", default=False)
    if missing and "levels" in table:
        table.fail(f'missing = true goes with cuts; among levels, "{NO_VALUE}" stands for missing values', "missing")
    if not table.wrong():
        _check_levels(table, levels)
        for position, (before, cut) in enumerate(pairwise(cuts), start=1):
            if not cut > before:
                table.fail(f"{cut!r} must be greater than the cut before, {before!r}", "cuts", position)
    table.close()
    if table.wrong():
        return Feature(name)
    if cuts:
        return binned(name, cuts, missing=missing)
    return Feature(name, tuple(level if isinstance(level, str) else level_of(level_key(level)) for level in levels))


def _check_levels(table: TomlTable, levels: Sequence[str | float]) -> None:
    """Note levels that are blank, or the same; 1, 1.0 and "1" are."""
    for position in [position for position, level in enumerate(levels) if not str(level).strip()]:
        table.fail(f'{levels[position]!r} is empty: write "NA" for missing values', "levels", position)
    for position, level, earlier in repeated(levels):
        if str(level).strip():
            table.fail(f"{level!r} is the same level as {earlier!r}", "levels", position)
    if len(levels) == 1:
        table.fail("needs at least two levels", "levels")


def is_level(value: object) -> bool:
    """Whether a value of TOML can be what a cell holds."""
    return isinstance(value, str) or is_finite(value)


def _refuse_two_uses(table: TomlTable, source: LogSource) -> None:
    """A column is one thing: no feature is known before treatment that is the treatment or its outcome."""
    if not source.form.header and TABLE not in source.files:
        return  # the same place in three files names three columns
    uses = dict.fromkeys(source.joined or [source.treatment], "treatment") | {source.id: "id"}
    uses |= {source.propensity: "propensity"} if is_column(source.propensity) else {}
    if source.follow_up:
        for key, column in (("time", source.follow_up.time), ("event", source.follow_up.event)):
            if column in uses and column:
                table.fail(f"{column!r} is the {uses[column]} already: name another column", key)
            uses |= {column: key}
    for column in source.outcome:
        if column in uses and column:
            table.fail(f"{column!r} is the {uses[column]} already: name a column of results", "outcome", column)
    uses |= dict.fromkeys(source.outcome, "outcome")
    if source.cluster in uses and source.cluster and source.cluster != source.id:
        table.fail(f"{source.cluster!r} is the {uses[source.cluster]} already: name another column", "cluster")
    for name in source.adjust_for:
        if name in uses and name:
            table.fail(f"{name!r} is the {uses[name]} already: name columns from before treatment", "adjust_for")
        elif name in source.features:
            table.fail(f"{name!r} is a feature, which is adjusted for already: leave it out here", "adjust_for")
    for name in source.features:
        if name in uses and name:
            out = "; leave it out of the features, or name another outcome" if name in source.outcome else ""
            table.fail(
                f"{name!r} is the {uses[name]} already: a feature must be known before treatment{out}", "features", name
            )


def read_event(table: TomlTable) -> tuple[str, dict[str, int]]:
    """The column that [data] names as `event`, and what each of its values means; "" if there is none."""
    if not isinstance(table.values.get("event"), dict):
        return table.column("event", ""), dict(ZERO_ONE)
    section = table.table("event")
    codes: dict[str, int] = {}
    for state, key in STATE_KEYS.items():
        if key not in section and state == COMPETING:
            continue
        for value in _meant(section, key):
            codes.setdefault(value, state)
            if codes[value] != state:
                section.fail(f"{value} is there already", key)
    column = section.column("column")
    section.close()
    return column, codes


def _meant(table: TomlTable, key: str) -> list[str]:
    """The value, or the list of values, of a key, as text."""
    wanted = f"{LEVEL_WANTED}, or a list of such"
    if key not in table:
        table.fail(f"{key} is missing: it must be {wanted}")
        return []
    stated = table.values[key]
    if not isinstance(stated, list) and not is_level(stated):
        table.fail(f"must be {wanted}, got {shown(stated)}", key)
        return []
    values = table.list_of(key, is_level, LEVEL_WANTED) if isinstance(stated, list) else [stated]
    for value in values:
        if level_key(value) == MISSING:
            table.fail(f"{value!r} is how a missing value is written, and means nothing else", key)
    return [str(level_of(level_key(value))) for value in values]


def read_coded(table: TomlTable) -> tuple[float, dict[str, float]]:
    """An outcome of words or codes, of which a table of [data.outcome] has the utilities: see `coded_outcome`."""
    utilities = {value: table.number(value) for value in table}
    try:
        return coded_outcome(utilities)
    except ValueError as error:
        if not table.wrong():
            table.fail(str(error))
        return 1.0, utilities
