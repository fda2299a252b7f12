"""LogSource: what a study says about its log, such as the levels of a feature, or the cuts between its bins.

`read_data` reads it from the table [data] of a study file. Nothing heavy is imported.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeGuard

from envs.records import Feature, RecordSpace
from envs.toml_reader import FINITE, TomlTable, is_finite, require_file, unknown
from policies.levels import MISSING, LevelKey, level_key
from policysim.files.bad_rows import DataError
from policysim.files.csv_format import CHECKS, RECOGNISED, CsvFormat
from policysim.files.many_files import READABLE, files_of, is_many, kind_of
from policysim.logs.binning import LEVEL_WANTED, is_level, read_feature
from policysim.logs.codes import COMPETING, EVENT, ZERO_ONE, read_coded, read_event

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

# What a reward must be, and an outcome; and what is said where there is none.
NUMBER_WANTED = f"must be a finite number within ±{FINITE:g}"
MISSING_OUTCOME = f'is missing: missing = "{EXCLUDE}" or "{WORST}" takes such rows'
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
        occur, sorted. Values of one name are one treatment.
    propensity : str or tuple of float
        The ratio of a randomisation, in the order of `treatments`; "equal" (1/k for k treatments); "arm shares", those
        of the patients that are used; "estimate"; or the column that holds the probability of the logged treatment.
    outcome : mapping of str to float
        Column and weight; the reward is the weighted sum. All weights are 0 where the outcome is `follow_up`.
    utility_range : tuple of float or None
        The lowest and the highest reward that are possible; None: none was declared. Where it is the default of a study
        (see `default_range`), each outcome must be within [0, 1], or one of its codes.
    missing : str
        What is done with rows without an outcome: "refuse", "exclude", or "worst" (the lowest reward of the range).
        With "exclude" so are rows without a treatment, or without a feature that has no level for it, else refused.
    features : mapping of str to Feature
        The declared domain, in the order of a record.
    joined : tuple of str
        The columns whose combination is the treatment, as in a factorial trial; () where one column holds it.
    form : CsvFormat
        What is stated of text files: whether they begin with the names of their columns, and how they are written.
    follow_up : FollowUp or None
        Where follow-up may end early: the reward is 1 for patients who are free of an event at a horizon, else 0.
    codes : mapping of str to mapping of str to float
        Outcomes that are words or codes: the number of each, by which the weight is multiplied.
    unknown : mapping of str to tuple of str
        The values of columns that mean that there is none.
    show_values : bool
        Whether messages about a feature's column show a patient's value, and not its row alone.
    costs : tuple of float
        What each of `treatments` costs, in units of utility, beside the outcome; () where none costs anything.
    adjust_for : tuple of str
        Columns from before treatment, beside the features, that are adjusted for.
    """

    treatment: str
    treatments: tuple[tuple[str, str], ...]
    propensity: str | tuple[float, ...]
    outcome: Mapping[str, float]
    utility_range: tuple[float, float] | None
    missing: str
    features: Mapping[str, Feature]
    joined: tuple[str, ...] = ()
    form: CsvFormat = RECOGNISED
    follow_up: FollowUp | None = None
    codes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    unknown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    show_values: bool = field(default=False, kw_only=True)
    costs: tuple[float, ...] = field(default=(), kw_only=True)
    adjust_for: tuple[str, ...] = ()

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the declared treatments, in the order of a policy's columns."""
        return tuple(dict.fromkeys(name for _, name in self.treatments))

    @property
    def default_range(self) -> tuple[float, float]:
        """The range of the weighted sum of outcomes that are each a code, or within [0, 1].

        Examples
        --------
        >>> columns = LogColumns(
        ...     treatment="arm", treatments=(), propensity="equal", utility_range=None, missing="refuse", features={},
        ...     outcome={"success": 1.0, "death": -2.0, "scale": 1.0}, codes={"scale": {"low": 0.5, "high": 3.0}}
        ... )
        >>> columns.default_range
        (-1.5, 4.0)
        """
        ends = [sorted(weight * end for end in self.ends_of(name)) for name, weight in self.outcome.items()]
        return sum((low for low, _ in ends), 0.0), sum((high for _, high in ends), 0.0)

    def ends_of(self, outcome: str) -> tuple[float, float]:
        """The lowest and the highest number of an outcome whose range is not declared."""
        codes = self.codes.get(outcome, {"0": 0.0, "1": 1.0}).values()
        return min(codes), max(codes)

    @property
    def later(self) -> tuple[str, ...]:
        """The columns of the time to an event and of whether it happened, where that is the outcome."""
        return (self.follow_up.time, self.follow_up.event) if self.follow_up else ()


@dataclass(frozen=True, kw_only=True)
class LogSource(LogColumns):
    r"""Where a log is and what its columns mean.

    Keys
    ----
    file : required
        a file that ends in `.csv`, `.tsv`, `.txt` or `.dat` (`.gz` or `.zst` may follow), or in `.parquet`, its path
        relative to this one; or three of them. A folder, a pattern such as `"logs/*.parquet"`, or a list of files is
        one log in many files; policysim counts it
    file.features : required with three files
        a row for each patient: `id` and features
    file.actions : required with three files
        `id`, and the treatment, or a column of 0 and 1 for each treatment
    file.outcomes : required with three files
        `id` and outcomes
    id : none
        the column of patients' ids, by which three files are joined; without it, row by row
    header : true
        `true` if text files begin with the names of their columns. With `false` the names are their places: "0", "1"
        and so on
    separator : recognised
        what stands between columns: `","`, `";"`, `"|"`, `"\t"` (tab) or `" "` (any number of spaces and tabs)
    decimal : recognised
        the decimal sign, `"."` or `","`. Where it is not stated, a number that also has the other sign is refused
    encoding : recognised
        UTF-8, Windows-1252 (Latin-1) and UTF-16 are recognised; any other that Python knows is to be stated:
        `"mac-roman"`
    cluster : none
        the column of what patients have in common: village, ward, or the `id` where a person has several rows, which
        only then may repeat. Folds and intervals are by whole clusters, of which each treatment needs at least 8
    treatment : required with one file
        the column of treatments; not needed if three files have a column of 0 and 1 for each treatment. Several columns
        may form the treatment together, as in a factorial trial: `["aspirin", "heparin"]`. A value then lists their
        values: `"1, 0" = "aspirin"`
    treatments.VALUE : those that occur, sorted
        the possible values of the column, each with a name; the first is the reference. Values of the same name are one
        treatment
    propensity : required
        the probability of each patient's treatment: `"equal"` (1/k for k treatments); the ratio of a randomisation, `{
        control = 1, drug = 2 }`, with a number > 0 for each name in `treatments`; `"arm shares"` if its ratio is
        unknown; a column that holds it; or `"estimate"` (a model of the features; features that are missing from it
        bias every number)
    outcome.COLUMN : required, unless there is a `horizon`
        columns and their weights, negative where 1 is harm; the weighted sum is the utility. Weight 0: shown for each
        arm, but no part of the utility. Several: `{ qaly = 20000, cost = -1 }`, with a `range`
    outcome.COLUMN.VALUE : none
        the utility of each word or code of a column, in place of a weight: `death = { Yes = -1, No = 0 }`, or of each
        level of a scale, `mrs = { 0 = 1, 1 = 0.9, 2 = 0.7, 3 = 0.4, 4 = 0.2, 5 = 0, 6 = 0 }`; other cells are bad rows
    unknown : none
        values that mean unknown: `[9, 999, "?"]`, in every feature, treatment, outcome and event, or those of single
        columns, also of times: `{ cured = [9], age = [999] }`. Such cells are missing, and counted in the report. A
        value that is declared (a level, treatment, code) is never unknown
    unknown.COLUMN : none
        the values of this column that mean unknown
    outcome_title : none
        the outcome in words, for screen and page
    time : none
        if follow-up may end early: the column of times, to the event or to the end of follow-up, numbers ≥ 0 in any
        unit. `time`, `event` and `horizon` go together: the utility is 1 for patients who are free of the event at the
        horizon, else 0, estimated by inverse probability of censoring weighting; `outcome` may add columns of weight 0
    event : none
        the column that is 1 if `time` is the time of the event, and 0 if it is the end of follow-up (censored); or a
        table of what its values mean, `{ column = "status", event = 2, censored = 1 }`
    event.column : required in such a table
        the column
    event.event : required in such a table
        the value that says that the event happened at `time`, or a list of such values
    event.censored : required in such a table
        the value, or values, that say that follow-up ended at `time`
    event.competing : none
        the value, or values, that say that something else happened at `time`, after which the event is impossible
    horizon : none
        a time > 0 that patients of every arm were followed to; or several, `[180, 365]`: the first is the one that
        decides, and the arms are shown at the others, too
    adjust_for : none
        columns from before treatment that are adjusted for, and neither hidden nor used by any policy: `["age",
        "bmi"]`. Numbers are used as they are (also those of features that are declared by cuts), words as levels,
        whichever occur; a missing number counts as the mean, with a mark of its own. They are used wherever something
        is modelled: propensities, outcomes, which outcomes are missing, and who is censored
    outcome_checked : none
        outcomes that you have checked, although they look like an id, a time of follow-up, or a feature from before
        treatment
    range : what outcomes within [0, 1] can sum to
        the lowest and the highest possible utility: `[0, 1]`
    missing : "refuse"
        rows without an outcome: `"refuse"`, `"exclude"`, or `"worst"` (they count as the lowest utility). `"exclude"`
        makes up for them by a model of which outcomes are observed, given treatment, features and `adjust_for`; it also
        leaves out and counts rows without a treatment, and rows in which a feature is missing that has no level `"NA"`,
        which are refused otherwise
    model : "linear"
        the model of scores: `"linear"`, `"logistic"` (one outcome of 0 and 1), `"gradient-boosting"`, `"constant"` (the
        mean of each arm), `"stacked"` (regressions without and with products of features, and small trees, weighted by
        held-out rows), or `"chosen"`: a regression, without or with products, shrunk to the means of the arms; held-out
        rows of the training part say how far
    public : false
        `true` if anyone may have the data, such as those of a published trial: a report's manifest then has their
        SHA-256. Otherwise its digests are under a key beside the data, `policysim-digest.key`
    features.NAME : required
        a column from before treatment, as `{ levels = [...] }` or as `{ cuts = [...] }`. Levels and cuts are public, so
        do not take them from these data

    Attributes
    ----------
    files : mapping of str to Path
        {"table": path}, or {"features": path, "actions": path, "outcomes": path}; CSV or Parquet. A table of many files
        has its folder, its pattern such as logs/*.parquet, or the first of a list.
    id : str
        The column that holds the patients' ids, by which three tables are joined; "" for none.
    cluster : str
        The column of clusters; "" if patients are independent.
    outcome_model : str
        One of `OUTCOME_MODELS`.
    outcome_checked : tuple of str
        Outcomes that the user has checked: their names and values are not questioned.
    study : Path or None
        The study's file, for messages.
    unread : int
        Lines of it that are still marked as guesses (`# CHECK`).
    guessed_range : bool
        Whether that of the range is one of them.
    outcome_title : str
        What the outcome is, in words; "" if the study does not say.
    public : bool
        Whether anyone may have the data.
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
    public: bool = False
    parts: tuple[Path, ...] = ()
    cluster: str = ""

    @property
    def repeats(self) -> bool:
        """Whether a person may have several rows."""
        return bool(self.id) and self.cluster == self.id

    @cached_property
    def space(self) -> RecordSpace:
        """The records: all combinations of declared levels and bins, whichever of them occur."""
        return RecordSpace(tuple(self.features.values()))


@dataclass(frozen=True)
class FollowUp:
    """An outcome that takes time, and that is not seen of patients whose follow-up ends before (who are censored).

    Attributes
    ----------
    time : str
        The column of times, in any unit: to the event, or to the end of follow-up.
    event : str
        The column that says what happened at that time.
    horizon : float
        > 0, in the unit of `time`: the outcome is to be free of the event at this time.
    codes : mapping of str to int
        What each value of this column means: `EVENT`, `CENSORED` or `COMPETING`.
    later : tuple of float
        Other times, at which the arms are shown, too.
    """

    time: str
    event: str
    horizon: float
    codes: Mapping[str, int] = field(default_factory=lambda: dict(ZERO_ONE))
    later: tuple[float, ...] = ()

    @property
    def horizons(self) -> tuple[float, ...]:
        """All of them, the one that decides first."""
        return (self.horizon, *self.later)

    @property
    def title(self) -> str:
        """The outcome in words.

        Examples
        --------
        >>> FollowUp("days", "relapse", 365.0).title
        'free of relapse at days = 365'
        >>> FollowUp("days", "status", 365.0, {"2": EVENT, "1": 0}).title
        'free of status = 2 at days = 365'
        """
        return self.title_at(self.horizon)

    def title_at(self, horizon: float) -> str:
        """The same at another horizon."""
        return f"free of {self.words(EVENT)} at {self.time} = {horizon:g}"

    @property
    def competes(self) -> bool:
        """Whether some values are of competing events."""
        return COMPETING in self.codes.values()

    def words(self, state: int) -> str:
        """The values of the column that mean `EVENT`, `CENSORED` or `COMPETING`, in words.

        Examples
        --------
        >>> FollowUp("days", "status", 365.0, {"2": EVENT, "3": EVENT, "1": 0}).words(EVENT)
        'status = 2 or 3'
        """
        if state == EVENT and self.codes == ZERO_ONE:
            return self.event
        return f"{self.event} = {' or '.join(value for value, meaning in self.codes.items() if meaning == state)}"


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


def unknown_words(unknown: Mapping[str, int]) -> str:
    """How many values of each column mean unknown; "" where none does.

    Examples
    --------
    >>> unknown_words({"cured": 1200, "age": 0})
    'Values that mean unknown count as missing: cured 1,200.'
    """
    counts = [f"{column} {number:,}" for column, number in unknown.items() if number]
    return f"Values that mean unknown count as missing: {', '.join(counts)}." if counts else ""


def outcome_words(source: LogSource) -> str:
    """What the outcome is, where the study says it in words or follow-up may end before it; else ""."""
    exactly = outcome_formula(source)
    if source.outcome_title:
        return f"The outcome: {source.outcome_title} ({exactly})."
    return f"The outcome: {exactly}." if source.follow_up else ""


def outcome_formula(source: LogColumns) -> str:
    """What the outcome is by the names of columns: of one column its name, and else the weighted sum."""
    if source.follow_up:
        return source.follow_up.title
    weights = {name: weight for name, weight in source.outcome.items() if weight}
    terms = []
    for name, weight in weights.items():
        if name in source.codes:
            utilities = [f"{code} = {weight * value + 0.0:g}" for code, value in source.codes[name].items()]
            terms.append(f"{name} ({', '.join(utilities)})")
        else:
            terms.append(name if list(weights.values()) == [1] else f"{weight:g} × {name}")
    return " + ".join(terms)


FOLLOW_UP = ("time", "event", "horizon")


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
    source = replace(source, utility_range=_range(table, source), unknown=_unknown(table, source))
    _refuse_two_uses(table, source)
    if source.repeats and TABLE not in files:
        table.fail("three files are joined by id, which must be unique in each: join them into one first", "cluster")
    weights = [1] if follow_up else [weight for weight in outcome.values() if weight]
    others = [number for numbers in codes.values() for number in numbers.values() if number not in (0, 1)]
    if source.outcome_model == LOGISTIC and weights and (weights != [1] or others):
        table.fail(
            f'"{LOGISTIC}" predicts rewards of 0 and 1: it needs exactly one outcome of weight 1, others of weight 0',
            "model",
        )
    return source


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
        paths = [part.resolve() for part in parts]
        for position, path in enumerate(paths):
            if path in paths[:position]:
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
    for value in table:
        name = table.text(value)
        key = level_key(value)
        if not name.strip():
            table.fail("must be a name, not empty", value)
        if key in values:
            table.fail(f"is the same value as {values[key]!r}", value)
        values.setdefault(key, value)
        found.append((value, name))
    if found and len({name for _, name in found}) < 2:
        table.fail("a choice needs at least two treatments")
    return tuple(found)


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
    return FollowUp(time, event, horizons[0], codes, horizons[1:]) if there else None


def _horizons(table: TomlTable) -> tuple[float, ...]:
    """One horizon, or a list of different ones."""
    several = isinstance(table.values.get("horizon"), list)
    wanted = f"a finite number within ±{FINITE:g}"
    stated = table.list_of("horizon", is_finite, wanted) if several else [table.number("horizon", 1.0)]
    for place, horizon in enumerate(stated):
        key = ("horizon", place) if several else ("horizon",)
        if not horizon > 0:
            table.fail(f"must be > 0, got {horizon:g}", *key)
        if horizon in stated[:place]:
            table.fail(f"is {horizon:g} twice", *key)
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


def declared_values(columns: LogColumns) -> dict[str, set[LevelKey]]:
    """The columns in which a value may be unknown, each with the values that are declared, which are not."""
    follow_up, treatments = columns.follow_up, [value for value, _ in columns.treatments]
    stated: dict[str, Collection[str | int]] = dict.fromkeys([*columns.outcome, *columns.adjust_for], ())
    stated |= columns.codes
    stated |= {name: feature.levels for name, feature in columns.features.items()}
    # Of several columns that make the treatment together, only their combinations are declared.
    stated |= dict.fromkeys(columns.joined, ()) if columns.joined else {columns.treatment: treatments}
    stated |= {follow_up.time: (), follow_up.event: follow_up.codes} if follow_up else {}
    return {name: set(map(level_key, values)) for name, values in stated.items() if name}


def unknown_of(
    by_column: Mapping[str, Sequence[object]], declared: Mapping[str, Collection[LevelKey]]
) -> dict[str, tuple[str, ...]]:
    """The values of each column that mean unknown: those that are not declared."""
    usable = {
        column: tuple(str(value) for value in values if level_key(value) not in declared.get(column, ()))
        for column, values in by_column.items()
    }
    return {column: values for column, values in usable.items() if values}


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
    if math.prod(shape) > MOST_RECORDS:
        section.fail(
            f"{' × '.join(map(str, shape))} = {math.prod(shape):,} records are declared, at most {MOST_RECORDS:,} are "
            "possible: declare fewer features, or coarser ones"
        )
    return features


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
