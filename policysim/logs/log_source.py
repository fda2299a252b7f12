"""LogSource: what a study says about its log; of a feature, its levels, or the cuts between bins of a number.

It is read from the table [data] of a study file, whose keys are declared in data_keys.toml. Nothing heavy is imported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TypeGuard

from envs.records import Feature, RecordSpace
from envs.toml_reader import FINITE, TomlTable, declared, unknown
from policies.levels import NO_VALUE, level_key, level_of
from policysim.files.bad_rows import DataError
from policysim.files.many_files import ENDINGS, files_of, is_file, is_many

# The names of the files: one table, or three.
TABLE = "table"
THREE_TABLES = FEATURES, ACTIONS, OUTCOMES = ("features", "actions", "outcomes")

# Between the names, and the values, of columns that make the treatment together.
JOINT = ", "

EQUAL, SHARES, ESTIMATE = NO_COLUMN = ("equal", "arm shares", "estimate")
REFUSE, EXCLUDE, WORST = MISSING_CHOICES = ("refuse", "exclude", "worst")
# See `policysim.logs.outcome_models`, which takes a second to import.
OUTCOME_MODELS = ("linear", "logistic", "gradient-boosting", "constant", "chosen", "stacked")
LINEAR, LOGISTIC, _, CONSTANT, CHOSEN, STACKED = OUTCOME_MODELS

# What `policysim init` writes behind each guess.
CHECK = "# CHECK"

# What a reward must be, and an outcome.
NUMBER_WANTED = f"must be a finite number within ±{FINITE:g}"
# Records of a declared domain: a table of utilities then has a few times as many entries.
MOST_RECORDS = 2_000_000


@dataclass(frozen=True, kw_only=True)
class LogColumns:
    """What the columns of a log mean.

    Attributes
    ----------
    treatment : str
        The column that holds the treatment; "" for a table of actions with a column of 0 and 1 for each. Of several
        columns that make it together (`joined_columns`), their names with commas between.
    treatments : tuple of (str, str)
        Each treatment's value (or column) and name, in the order of a policy's columns; empty: those that
        occur, sorted.
    propensity : str or tuple of float
        The ratio of a randomisation, in the order of `treatments`; "equal" (1/k for k treatments); "arm shares", those
        of the patients that are used; "estimate"; or the column that holds the probability of the logged treatment.
    outcome : mapping of str to float
        Column and weight; the reward is the weighted sum. All weights are 0 where the outcome is `follow_up`.
    utility_range : tuple of float or None
        The lowest and the highest reward that are possible; None: none was declared. Where it is the range of outcomes
        within [0, 1] (the default of a study, see `default_range`), each outcome must be within [0, 1].
    missing : str
        What is done with rows without an outcome: "refuse", "exclude", or "worst" (the lowest reward of the range).
        Rows without a treatment are excluded with "exclude", and refused otherwise.
    features : mapping of str to Binning
        The declared domain, in the order of a record.
    joined : tuple of str
        The columns whose combination is the treatment, as in a factorial trial; () where one column holds it.
    header : bool
        Whether CSV files begin with the names of their columns; else these are their places, "0" first.
    follow_up : FollowUp or None
        Where follow-up may end early: the reward is 1 for patients who are free of an event at a horizon, else 0.
    """

    treatment: str
    treatments: tuple[tuple[str, str], ...]
    propensity: str | tuple[float, ...]
    outcome: Mapping[str, float]
    utility_range: tuple[float, float] | None
    missing: str
    features: Mapping[str, Binning]
    joined: tuple[str, ...] = ()
    header: bool = True
    follow_up: FollowUp | None = None

    @property
    def later(self) -> tuple[str, ...]:
        """The columns of the time to an event and of whether it happened, where that is the outcome."""
        return (self.follow_up.time, self.follow_up.event) if self.follow_up else ()


@dataclass(frozen=True, kw_only=True)
class LogSource(LogColumns):
    """Where a log is and what its columns mean.

    Attributes
    ----------
    files : mapping of str to Path
        {"table": path}, or {"features": path, "actions": path, "outcomes": path}; CSV or Parquet. A table of many files
        has its folder, its pattern such as logs/*.parquet, or the first of a list.
    id : str
        The column that holds the patients' ids, by which three tables are joined; "" for none.
    outcome_model : str
        One of `OUTCOME_MODELS`.
    outcome_checked : tuple of str
        Outcomes that somebody has looked at: they are taken whatever their names and values suggest.
    study : Path or None
        The study's file, for messages.
    unread : int
        Lines of it that are still marked as guesses (`# CHECK`).
    guessed_range : bool
        Whether that of the range is one of them.
    outcome_title : str
        What the outcome is, in words; "" if the study does not say.
    parts : tuple of Path
        The files of one table; () of three tables. More than one are counted, and not kept in memory
        (`policysim.logs.counted_log`).
    """

    files: Mapping[str, Path]
    utility_range: tuple[float, float]
    id: str
    outcome_model: str
    outcome_checked: tuple[str, ...] = ()
    study: Path | None = None
    unread: int = 0
    guessed_range: bool = False
    outcome_title: str = ""
    parts: tuple[Path, ...] = ()

    @cached_property
    def space(self) -> RecordSpace:
        """The records: all combinations of declared levels and bins, whichever of them occur."""
        return RecordSpace(tuple(binning.feature for binning in self.features.values()))


@dataclass(frozen=True)
class FollowUp:
    """An outcome that takes time, and that is not seen of patients whose follow-up ends before (who are censored).

    Attributes
    ----------
    time : str
        The column of times, in any unit: to the event, or to the end of follow-up.
    event : str
        The column that tells which of the two: 1 (the event) or 0 (censored).
    horizon : float
        > 0, in the unit of `time`: the outcome is to be free of the event at this time.
    """

    time: str
    event: str
    horizon: float

    @property
    def title(self) -> str:
        """The outcome in words.

        Examples
        --------
        >>> FollowUp("days", "relapse", 365.0).title
        'free of relapse at days = 365'
        """
        return f"free of {self.event} at {self.time} = {self.horizon:g}"


def default_range(outcome: Mapping[str, float]) -> tuple[float, float]:
    """The range of the weighted sum of outcomes that are each within [0, 1].

    Examples
    --------
    >>> default_range({"success": 1.0, "death": -2.0})
    (-2.0, 1.0)
    """
    weights = outcome.values()
    return sum((w for w in weights if w < 0), 0.0), sum((w for w in weights if w > 0), 0.0)


MISSING_BY_LEVEL = f'missing = true goes with cuts; among levels, "{NO_VALUE}" stands for missing values'


@dataclass(frozen=True)
class Binning:
    """What values a feature may have, declared and not read off the rows.

    Attributes
    ----------
    name : str
        The column.
    levels : tuple of str, int or float
        All values it may have, in order; 1, 1.0, true and "1" are the same. A level "NA" stands for missing values,
        which have no level otherwise.
    cuts : tuple of float
        In place of levels: rising numbers. Cuts (28, 34) make three half-open bins, "< 28", "28 to < 34" and "≥ 34".
    missing : bool
        With cuts: whether missing values have a level of their own, "NA", the last.

    Examples
    --------
    >>> Binning("age", cuts=(28, 34), missing=True).feature.levels
    ('< 28', '28 to < 34', '≥ 34', 'NA')
    """

    name: str
    levels: tuple[str | float, ...] = ()
    cuts: tuple[float, ...] = ()
    missing: bool = False

    def __post_init__(self) -> None:
        """Check the levels or the cuts."""
        if bool(self.levels) == bool(self.cuts):
            raise ValueError(f"feature {self.name!r} needs levels or cuts, and not both.")
        if self.missing and self.levels:
            raise ValueError(f"feature {self.name!r}: {MISSING_BY_LEVEL}.")
        for position, reason in levels_wrong(self.levels) if self.levels else cuts_wrong(self.cuts):
            raise ValueError(f"feature {self.name!r}: {(self.levels or self.cuts)[position]!r} {reason}.")
        if len(self.levels) == 1:
            raise ValueError(f"feature {self.name!r} needs at least two levels, got {list(self.levels)!r}.")

    @cached_property
    def feature(self) -> Feature:
        """The feature of a record: what cells are its levels, `policies.levels` says. Bins are named by their ends."""
        if self.levels:
            levels = [level if isinstance(level, str) else level_of(level_key(level)) for level in self.levels]
            return Feature(self.name, tuple(levels))
        ends = [str(level_of(float(cut))) for cut in self.cuts]
        bins = [f"< {ends[0]}", *(f"{low} to < {high}" for low, high in pairwise(ends)), f"≥ {ends[-1]}"]
        return Feature(self.name, (*bins, *([NO_VALUE] if self.missing else [])), cuts=self.cuts)


def levels_wrong(levels: Sequence[str | float]) -> list[tuple[int, str]]:
    """The positions of levels that cannot be used, each with the reason."""
    found: list[tuple[int, str]] = []
    seen: dict[object, object] = {}
    for position, level in enumerate(levels):
        key = level_key(level)
        if isinstance(level, str) and not level.strip():
            found.append((position, 'is empty: write "NA" for missing values'))
        elif key in seen:
            found.append((position, f"is the same level as {seen[key]!r}"))
        seen.setdefault(key, level)
    return found


def cuts_wrong(cuts: Sequence[float]) -> list[tuple[int, str]]:
    """The positions of cuts that cannot be used, each with the reason."""
    found = [(position, "must be finite") for position, cut in enumerate(cuts) if not math.isfinite(cut)]
    found += [
        (position, f"must be greater than the cut before, {before!r}")
        for position, (before, cut) in enumerate(pairwise(cuts), start=1)
        if not cut > before
    ]
    return found


def is_column(propensity: str | tuple[float, ...]) -> TypeGuard[str]:
    """Whether propensities are a column."""
    return isinstance(propensity, str) and propensity not in NO_COLUMN


def lot_words(propensity: str | tuple[float, ...]) -> str:
    """The lot by which treatments were given, the same for all patients; "" if there was none.

    Examples
    --------
    >>> lot_words("equal"), lot_words((1.0, 2.0)), lot_words("arm shares"), lot_words("estimate")
    ('equally', '1:2', '(probabilities: arm shares)', '')
    """
    if isinstance(propensity, str):
        return {EQUAL: "equally", SHARES: f"(probabilities: {SHARES})"}.get(propensity, "")
    return ":".join(f"{number:g}" for number in propensity)


def outcome_words(source: LogSource) -> str:
    """What the outcome is, where the study says it in words or follow-up may end before it; else ""."""
    exactly = outcome_formula(source)
    if source.outcome_title:
        return f"The outcome: {source.outcome_title} ({exactly})."
    return f"The outcome: {exactly}." if source.follow_up else ""


def outcome_formula(source: LogSource) -> str:
    """What the outcome is by the names of columns: of one column its name, and else the weighted sum."""
    weights = {name: weight for name, weight in source.outcome.items() if weight}
    if source.follow_up:
        return source.follow_up.title
    if list(weights.values()) == [1]:
        return next(iter(weights))
    return " + ".join(f"{weight:g} × {name}" for name, weight in weights.items())


# Stands for a feature whose declaration cannot be used, so that its name is known.
PLACEHOLDER = (0, 1)
FOLLOW_UP = ("time", "event", "horizon")

KEYS = declared(Path(__file__).with_name("data_keys.toml"))


def read_data(table: TomlTable, folder: Path) -> LogSource:
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
    outcome = _outcome(table, follow_up)
    among = f"one of {', '.join(outcome)}"
    treatments = _treatments(table["treatments"])
    source = LogSource(
        files=files,
        treatment=JOINT.join(joined) or ("" if without else table["treatment"]),
        treatments=treatments,
        propensity=_propensity(table, treatments),
        outcome=outcome,
        utility_range=_range(table, outcome, follow_up),
        missing=table["missing"],
        id=table["id"],
        outcome_model=table["model"],
        features=_features(table),
        joined=joined,
        header=table["header"],
        outcome_checked=tuple(map(str, table.list_of("outcome_checked", outcome.__contains__, among, []))),
        study=table.mistakes.path,
        unread=sum(CHECK in line for line in table.mistakes.text.splitlines()),
        guessed_range=any(CHECK in line and line.startswith("range") for line in table.mistakes.text.splitlines()),
        follow_up=follow_up,
        outcome_title=table["outcome_title"],
        parts=parts,
    )
    _refuse_two_uses(table, source)
    weights = [1] if follow_up else [weight for weight in outcome.values() if weight]
    if source.outcome_model == LOGISTIC and weights and weights != [1]:
        table.fail(
            f'"{LOGISTIC}" predicts rewards of 0 and 1: it needs exactly one outcome of weight 1, others of weight 0',
            "model",
        )
    table.close()
    return source


def _files(table: TomlTable, folder: Path) -> tuple[dict[str, Path], tuple[Path, ...]]:
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
            parts = files_of(path)
        except DataError as error:
            table.fail(str(error), "file")
            return {TABLE: path}, ()
        return {TABLE: path if len(parts) > 1 else parts[0]}, parts
    found = _path(table, "file", folder)
    return {TABLE: found}, (found,)


def _path(table: TomlTable, key: str, folder: Path) -> Path:
    name = table.text(key)
    return _file(table, name, folder, key) if name else folder / name


def _file(table: TomlTable, name: str, folder: Path, key: str | int) -> Path:
    """A file that is there; `key` is where the table names it, a number in the list `file`."""
    path, where = folder / name, ("file", key) if isinstance(key, int) else (key,)
    if path.suffix.lower() not in ENDINGS:
        table.fail(f"must end in .csv or .parquet, got {name!r}", *where)
    elif not is_file(path):
        table.fail(f"there is no file {path.as_posix()}", *where)
    return path


def _joined(table: TomlTable) -> tuple[str, ...]:
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


def _treatments(table: TomlTable) -> tuple[tuple[str, str], ...]:
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


def _propensity(table: TomlTable, treatments: Sequence[tuple[str, str]]) -> str | tuple[float, ...]:
    """A word, a column, or the ratio in which treatments were given, in their order."""
    if not isinstance(table.values.get("propensity"), dict):
        return str(table["propensity"])
    section, names = table.table("propensity"), [name for _, name in treatments]
    if not names:
        table.fail("a ratio needs [data.treatments], whose names it has", "propensity")
    ratio = {}
    for name in section.values:
        if names and name not in names:
            section.fail(unknown("treatment", name, names), name)
        ratio[name] = section.number(name)
        if not ratio[name] > 0:
            section.fail(f"must be > 0, got {ratio[name]:g}", name)
    for name in names:
        if name not in ratio:
            table.fail(f"has no number for the treatment {name!r}", "propensity")
    return tuple(ratio.get(name, 1.0) for name in names)


def _follow_up(table: TomlTable) -> FollowUp | None:
    """Time, event and horizon, which go together; None without any of them."""
    time, event, horizon = (table[key] for key in FOLLOW_UP)
    there = [key for key in FOLLOW_UP if key in table]
    for key in FOLLOW_UP:
        if there and key not in there:
            table.fail(f"{key} is missing: time, event and horizon go together")
    if not horizon > 0:
        table.fail(f"must be > 0, got {horizon:g}", "horizon")
    return FollowUp(time, event, horizon) if there else None


def _outcome(table: TomlTable, follow_up: FollowUp | None) -> dict[str, float]:
    """Columns and weights; beside being free of an event at a horizon, others are only shown, with weight 0."""
    if "outcome" not in table and not follow_up:
        table.fail("outcome is missing: it must be a table of columns and weights, such as { success = 1.0 }")
    section = table["outcome"]
    outcome = {column: section.number(column) for column in section.values}
    if follow_up:
        for column in [column for column, weight in outcome.items() if weight]:
            table.fail(
                "must be 0: with time, event and horizon the outcome is to be free of the event at the horizon, and "
                "other columns are only shown",
                "outcome",
                column,
            )
        return dict.fromkeys(outcome, 0.0)
    if "outcome" in table and not any(outcome.values()):
        table.fail(
            "needs a column with a weight other than 0, such as { success = 1.0 }, or { death = -1.0 } where 1 is "
            "harm, and which is none of the features",
            "outcome",
        )
    return outcome


def _range(table: TomlTable, outcome: Mapping[str, float], follow_up: FollowUp | None) -> tuple[float, float]:
    if follow_up:
        if table.values.get("range", [0, 1]) != [0, 1]:
            table.fail("is [0, 1] with time, event and horizon: leave it out", "range")
        return 0.0, 1.0
    if "range" not in table:
        return default_range(outcome)
    ends = table["range"]
    if isinstance(table.values["range"], list) and (len(ends) != 2 or not ends[0] < ends[1]):
        table.fail(f"must be [lowest, highest] reward, got {table.values['range']!r}", "range")
    return (float(ends[0]), float(ends[1])) if len(ends) == 2 else (0.0, 1.0)


def _features(table: TomlTable) -> dict[str, Binning]:
    if not isinstance(table.values.get("features", {}), dict) or not table.values.get("features"):
        table.fail("features are missing: [data.features] must declare at least one, such as sex = { levels = [0, 1] }")
    section = table["features"]
    features = {name: _binning(name, section.table(name)) for name in section.values}
    shape = [len(binning.feature.levels) for binning in features.values()]
    if math.prod(shape) > MOST_RECORDS:
        section.fail(
            f"{' × '.join(map(str, shape))} = {math.prod(shape):,} records are declared, at most {MOST_RECORDS:,} are "
            "possible: declare fewer features, or coarser ones"
        )
    return features


def _binning(name: str, entry: TomlTable) -> Binning:
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


def _refuse_two_uses(table: TomlTable, source: LogSource) -> None:
    """A column is one thing: no feature is known before treatment that is the treatment or its outcome."""
    if not source.header and TABLE not in source.files:
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
    for name in source.features:
        if name in uses and name:
            out = "; leave it out of the features, or name another outcome" if name in source.outcome else ""
            table.fail(
                f"{name!r} is the {uses[name]} already: a feature must be known before treatment{out}", "features", name
            )
