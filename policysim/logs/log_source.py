"""LogSource: what a study says about its log, such as the levels of a feature, or the cuts between its bins.

`data_section` reads it from the table [data] of a study file. Nothing heavy is imported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeGuard

from envs.records import Feature, RecordSpace
from envs.toml_reader import FINITE
from policies.levels import MISSING, LevelKey, level_key, repeated
from policysim.files.csv_format import RECOGNISED, CsvFormat

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

FOLLOW_UP = ("time", "event", "horizon")
# What may have happened at the end of a patient's follow-up; and what a column of 0 and 1 says of it.
CENSORED, EVENT, COMPETING = STATES = (0, 1, 2)
ZERO_ONE = {"1": EVENT, "0": CENSORED}
# By which key a study names its values.
STATE_KEYS = {EVENT: "event", CENSORED: "censored", COMPETING: "competing"}

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
    id : str
        The column that holds the patients' ids, by which three tables are joined; "" for none.
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
    show_values: bool = False
    costs: tuple[float, ...] = ()
    adjust_for: tuple[str, ...] = ()
    id: str = ""

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
    def columns(self) -> tuple[str, ...]:
        """The names of those that are read of each patient, but for ids."""
        chance = [self.propensity] if is_column(self.propensity) else []
        taken = self.joined or (self.treatment,)
        names = (*self.features, *taken, *chance, *self.outcome, *self.later, *self.adjust_for)
        return tuple(dict.fromkeys(filter(None, names)))

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
        the column of patients' ids, by which three files are joined, and of which none may repeat, in many files
        either; without it, three files are joined row by row
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
    def named(self) -> set[str]:
        """The names of all columns that the study says something of, that of several that make the treatment too."""
        return {*self.columns, self.treatment, self.id, self.cluster}

    @property
    def unread_words(self) -> str:
        """How many guesses are unread."""
        guesses = "1 guess marked # CHECK is" if self.unread == 1 else f"{self.unread} guesses marked # CHECK are"
        return f"{guesses} unread: what follows is only as good as that."

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
    horizons : tuple of float
        > 0, in the unit of `time`: the outcome is to be free of the event at the first; the arms are shown at all.
    codes : mapping of str to int
        What each value of this column means: `EVENT`, `CENSORED` or `COMPETING`.
    """

    time: str
    event: str
    horizons: tuple[float, ...]
    codes: Mapping[str, int] = field(default_factory=lambda: dict(ZERO_ONE))

    @property
    def horizon(self) -> float:
        """The one that decides."""
        return self.horizons[0]

    @property
    def title(self) -> str:
        """The outcome in words.

        Examples
        --------
        >>> FollowUp("days", "relapse", (365.0,)).title
        'free of relapse at days = 365'
        >>> FollowUp("days", "status", (365.0,), {"2": EVENT, "1": 0}).title
        'free of status = 2 at days = 365'
        """
        return self.title_at(self.horizon)

    def title_at(self, horizon: float) -> str:
        """The same at another horizon."""
        return f"free of {self.words(EVENT)} at {self.time} = {horizon:g}"

    def words(self, state: int) -> str:
        """The values of the column that mean `EVENT`, `CENSORED` or `COMPETING`, in words.

        Examples
        --------
        >>> FollowUp("days", "status", (365.0,), {"2": EVENT, "3": EVENT, "1": 0}).words(EVENT)
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
    """What the outcome is by the names of columns: of one column its name or successes, and else the weighted sum."""
    if source.follow_up:
        return source.follow_up.title
    weights = {name: weight for name, weight in source.outcome.items() if weight}
    for name, codes in source.codes.items():
        if weights == {name: 1} and {*codes.values()} == {0, 1}:
            return f"{name} is {' or '.join(str(code) for code, value in codes.items() if value)}"
    terms = []
    for name, weight in weights.items():
        if name in source.codes:
            utilities = [f"{code} = {weight * value + 0.0:g}" for code, value in source.codes[name].items()]
            terms.append(f"{name} ({', '.join(utilities)})")
        else:
            terms.append(name if list(weights.values()) == [1] else f"{weight:g} × {name}")
    return " + ".join(terms)


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


def coded_outcome(utilities: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """The weight of an outcome of words or codes, and the number of each, which make these utilities.

    Where none is > 0 the column is harm: its numbers are positive, and its weight is -1, as that of a column of 0 and 1
    would be. ValueError for values that are missing, the same, or without a difference.

    Examples
    --------
    >>> coded_outcome({"Yes": -1, "No": 0}), coded_outcome({"well": 1, "ill": 0.5, "dead": -0.1})
    ((-1.0, {'Yes': 1.0, 'No': 0.0}), (1.0, {'well': 1.0, 'ill': 0.5, 'dead': -0.1}))
    """
    for value in utilities:
        if level_key(value) == MISSING:
            raise ValueError(f"{value!r} is how a missing value is written, and has no utility")
    for _, value, earlier in repeated(utilities):
        raise ValueError(f"{value!r} is the same value as {earlier!r}")
    if len(set(utilities.values())) < 2:
        raise ValueError("must give at least two values different utilities, such as { Yes = 1, No = 0 }")
    weight = -1.0 if max(utilities.values()) <= 0 else 1.0
    return weight, {value: weight * utility + 0.0 for value, utility in utilities.items()}
