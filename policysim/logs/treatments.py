"""What each row of a log says was done: which treatment, and how probable it was."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from envs.toml_reader import unknown
from policies.arrays import ROUNDING, FloatArray, IntArray
from policies.levels import MISSING, LevelKey, Levels, codes_of_keys, level_key, level_of, repeated, sorted_keys
from policysim.errors import optional
from policysim.files.bad_rows import NEARLY_ALL, BadRows, DataError, are_nearly_all
from policysim.files.data_table import DataTable, coded, missing, numbers
from policysim.logs.adjusters import Covariates
from policysim.logs.clusters import folds_of_clusters
from policysim.logs.log_frame import LoggedData, patients_by_code
from policysim.logs.log_source import EQUAL, ESTIMATE, EXCLUDE, SHARES
from policysim.logs.outcome_models import one_thread, with_products
from policysim.logs.toml_text import toml_string

# The mean of numbers above 1 that are weights, and not per cent.
MOST_WEIGHT = 10
# Of so many values that nobody has declared, some cannot be meant as treatments.
MOST_UNDECLARED = 100


def taken_in_column(
    table: DataTable, column: str, declared: Sequence[tuple[str, str]], policy: str, bad: BadRows
) -> tuple[IntArray, tuple[str, ...]]:
    """Treatments in one column, as declared (value and name) or else those that occur, sorted; others are bad rows.

    So are rows without one, unless `policy` leaves rows out where something is missing ("exclude").

    Returns
    -------
    codes : array, (n_rows,)
        Positions in the names; -1 where the treatment is missing, if such rows are to be left out.
    names : tuple of str
        All treatments, in the order of a policy's columns.
    """
    values, names = tuple(value for value, _ in declared), tuple(name for _, name in declared)
    cells = table[column]
    positions, keys = coded(cells)
    occurring = set(keys) - {MISSING}
    _refuse_other_case(table, column, occurring, values, show=bad.show)
    if not declared:
        if len(occurring) > MOST_UNDECLARED:
            raise DataError(
                f"{table.name}: {column}: has {len(occurring):,} distinct values: declare the treatments, or name "
                "another column"
            )
        values = names = tuple(str(level_of(key)) for key in sorted_keys(occurring))
    arms = tuple(dict.fromkeys(names))
    _refuse_one(table, column, arms)
    codes = codes_of_keys(Levels(column, values), keys)[positions]
    wrong = codes < 0
    if policy == EXCLUDE:
        wrong &= ~missing(cells, wrong)
    bad.add_values(table, wrong, column, cells.array, f"must be one of the treatments {', '.join(values)}")
    return np.array([*map(arms.index, names), -1], dtype=np.intp)[codes], arms


def without_case(value: LevelKey) -> str:
    """The text of a value without capitals, margins and runs of spaces, in which mistyped treatments differ."""
    return " ".join(str(level_of(value)).casefold().split())


def _refuse_other_case(
    table: DataTable, column: str, occurring: Collection[LevelKey], declared: Sequence[str], *, show: bool
) -> None:
    """DataError for values that differ in capitals or spaces only, unless both are declared: one arm would be two."""
    stated = set(map(level_key, declared))
    for _, key, other in repeated([*sorted_keys(stated), *sorted_keys(set(occurring) - stated)], without_case):
        if not {other, key} <= stated:
            values = [toml_string(str(level_of(each))) for each in (other, key)] if show else ["two values"]
            arms = ", ".join(f"{value} = {toml_string(str(level_of(other)))}" for value in values)
            raise DataError(
                f"{table.name}: {column}: {' and '.join(values)} differ in capitals or spaces only: declare both, as "
                + (f"one arm (treatments = {{ {arms} }} in [data]) or as two" if show else "treatments in [data]")
            )


def taken_one_hot(table: DataTable, columns: Mapping[str, str], bad: BadRows) -> tuple[IntArray, tuple[str, ...]]:
    """The same of columns of 0 and 1, by name; rows in which not exactly one is 1 are bad."""
    arms = tuple(dict.fromkeys(columns.values()))
    _refuse_one(table, "columns", arms)
    matrix = np.column_stack([numbers(table[column]) for column in columns])
    valid = np.isin(matrix, (0.0, 1.0))
    for position, column in enumerate(columns):
        bad.add_values(table, ~valid[:, position], column, table[column].array, "must be 0 or 1")
    sums = matrix.sum(axis=1)
    title = ", ".join(columns) if len(columns) <= 4 else f"{next(iter(columns))} ... {list(columns)[-1]}"
    must, several = "must sum to 1", valid.all(axis=1) & (sums != 1)
    bad.add(table, several, title, lambda row: f"{must}, got a sum of {sums[row]:g}" if bad.show else must)
    return np.array(list(map(arms.index, columns.values())), dtype=np.intp)[matrix.argmax(axis=1)], arms


def one_hot_columns(table: DataTable, declared: Sequence[tuple[str, str]], without: Sequence[str]) -> dict[str, str]:
    """Column and name of each treatment: those that are declared, else all columns but some."""
    names = [name for name in table.columns if name not in without]
    for column, _ in declared:
        if column not in names:
            raise DataError(f"{table.name}: {unknown('treatment', column, names)}")
    return dict(declared) if declared else {name: name for name in names}


def _refuse_one(table: DataTable, column: str, names: Sequence[str]) -> None:
    if len(names) < 2:
        only = f"only {names[0]!r} occurs" if names else "none occurs"
        raise DataError(f"{table.name}: {column}: a choice needs at least two treatments, {only}: declare them")


FOLDS = 5
ONE_TREATMENT = 'propensity = "estimate" needs at least two treatments that occur'


def read_propensities(table: DataTable, column: str, bad: BadRows) -> FloatArray:
    """A column of probabilities, (n_rows,); those outside (0, 1] are bad rows."""
    cells = table[column]
    values = numbers(cells)
    outside = ~((values > 0) & (values <= 1))
    must = "must be a probability > 0 and <= 1, that of the treatment that the row got"
    hint = _instead_of_probabilities(values, cells) if are_nearly_all(outside) else ""
    bad.add_values(table, outside, column, cells.array, must, hint=hint)
    return values


def _instead_of_probabilities(values: FloatArray, cells: pd.Series) -> str:
    """What a column that nearly everywhere is no probability holds, and what to do about it; "" if that is not known.

    Of k treatments, 1 / p is k on average, and p is at least 1 / k on average: of fewer than ten, numbers above 1 are
    weights 1 / p if their mean is below 10, and per cent if it is above.
    """
    if np.isnan(values).all():
        in_percent = cells.astype(str).str.strip().str.endswith("%").mean() >= NEARLY_ALL
        return "; it is in per cent: divide by 100, and leave out the sign" if in_percent else ""
    if np.mean(values > 1) < NEARLY_ALL:
        return ""
    above = values[values > 1]
    if above.mean() > MOST_WEIGHT and above.max() <= 100:
        return "; it looks like per cent: divide by 100"
    return "; it looks like a weight 1/p: give p"


def lot(propensity: str | tuple[float, ...], n_actions: int) -> FloatArray | None:
    """The probability of each treatment by a declared lot, (k,); None where nobody has declared one.

    Examples
    --------
    >>> lot((1.0, 3.0), 2).tolist(), lot("equal", 2).tolist(), lot("arm shares", 2)
    ([0.25, 0.75], [0.5, 0.5], None)
    """
    if isinstance(propensity, str):
        return np.full(n_actions, 1 / n_actions) if propensity == EQUAL else None
    return np.array(propensity) / sum(propensity)


def with_propensities(
    propensity: str | tuple[float, ...], data: LoggedData, covariates: Covariates, parts: IntArray | None = None
) -> LoggedData:
    """The data with propensities that are made of the treatments of all, where a log asks for it.

    `parts` are those of `estimate_propensities`.
    """
    if propensity == SHARES:
        return replace(data, propensities=arm_shares(data.actions, data.n_actions, data.counts))
    if propensity == ESTIMATE:
        return replace(data, propensities=estimate_propensities(covariates, data, parts))
    return data


def arm_shares(actions: IntArray, n_actions: int, counts: IntArray | None = None) -> FloatArray:
    """The share of each row's treatment, (n_rows,): the propensities of a randomisation whose ratio is not known.

    Parameters
    ----------
    actions : array, (n_rows,)
        Of the rows that are used.
    n_actions : int
    counts : array, (n_rows,), optional
        How many patients each row stands for.

    Notes
    -----
    They are used as known ones are. Given how many patients each arm got, a randomisation that was the same for all is
    a draw of that many among them, in which these are the probabilities, exactly (Imbens & Rubin 2015, chapter 4). Over
    draws with other sizes of arms, estimating propensities makes the spread of estimates that are weighted by them
    smaller, never larger (Lunceford & Davidian 2004): an interval that leaves this out may be too wide, and is not too
    narrow.

    References
    ----------
    Imbens & Rubin (2015), Causal inference for statistics, social, and biomedical sciences.
    Lunceford & Davidian (2004), Stratification and weighting via the propensity score in estimation of causal treatment
    effects: a comparative study.
    """
    sizes = patients_by_code(actions, counts, n_actions)
    shares: FloatArray = sizes / sizes.sum()
    return shares[actions]


def estimate_propensities(covariates: Covariates, data: LoggedData, parts: IntArray | None = None) -> FloatArray:
    """The probability of each row's treatment by stacked classifiers, cross-fitted over five parts.

    Each row's probability comes from models that were fitted without its part. Nothing is floored or clipped: a tiny
    propensity is a finding about the log.

    Parameters
    ----------
    covariates : Covariates
        What is known of the patient of each row.
    data : LoggedData
        The treatments, and how many patients each row stands for; whole clusters are dealt among the parts.
    parts : array, (n_rows,), optional
        The part of each row, from `counted_parts`.

    Returns
    -------
    array, (n_rows,)

    Raises
    ------
    DataError
        If a treatment that occurs has a single patient: no model can be fitted without it.

    Notes
    -----
    What is stacked is multinomial logistic regression, the same with pairwise products of covariates, and small boosted
    trees: the mixture of them that makes treatments of held-out rows most probable.
    Only differences between patients that the covariates show are accounted for: where treatment was chosen by
    something else that also matters for the outcome, all estimates from such propensities are confounded. Known
    propensities of a randomised trial have no such problem.

    References
    ----------
    Rosenbaum & Rubin (1983), The central role of the propensity score in observational studies for causal effects.
    van der Laan, Polley & Hubbard (2007), Super learner.
    Chernozhukov et al. (2018), Double/debiased machine learning for treatment and structural parameters.
    """
    folds = _folds(data) if parts is None else parts
    patients = covariates.patients
    centre, spread = patients.mean(axis=0), patients.std(axis=0)
    varies = spread > 10 * ROUNDING * np.abs(centre)  # not rounding of a constant column
    scaled = replace(covariates, patients=(patients - centre) / np.where(varies, spread, 1))
    propensities = np.full(data.n_rows, np.nan)
    for fold in range(int(folds.max()) + 1):
        held_out = folds == fold
        wanted, patient_of_row = np.unique(scaled.groups[held_out], return_inverse=True)
        probabilities = _stack(scaled.of(~held_out), data.of(~held_out), scaled.patients[wanted])
        propensities[held_out] = probabilities[patient_of_row, data.actions[held_out]]
    return propensities


# Parts of the rows that the stack of one fold is weighted by, and the steps of its weights.
HELD_OUT, STEPS = 3, 200
# Of more rows, models are fitted to so many, drawn at random; and so many patients are predicted at a time.
MOST_FITTED, BLOCK = 50_000, 20_000
# By hessians, not by rows: equal patients are one row with a weight.
CLASSIFYING_TREES = {
    "max_iter": 40,
    "max_leaf_nodes": 8,
    "max_bins": 32,
    "min_samples_leaf": 1,
    "l2_regularization": 5.0,
    "random_state": 0,
}


def _stack(covariates: Covariates, data: LoggedData, wanted: FloatArray) -> FloatArray:
    """Probabilities of the treatments for the wanted patients, (m, n_actions), from some rows."""
    if data.n_rows > MOST_FITTED and len(covariates.patients) > MOST_FITTED:
        some = np.sort(np.random.default_rng(0).choice(data.n_rows, MOST_FITTED, replace=False))
        covariates, data = covariates.of(some), data.of(some)
    folds, learners = dealt_parts(data.actions, HELD_OUT, data.clusters), _learners()
    likelihoods = np.zeros((data.n_rows, len(learners)))
    for fold in range(HELD_OUT):
        held_out = folds == fold
        if not held_out.any() or len(np.unique(data.actions[~held_out])) < 2:
            continue  # of a handful of patients
        needed, patient_of_row = np.unique(covariates.groups[held_out], return_inverse=True)
        for column, learner in enumerate(learners):
            table = _fitted(learner, covariates.of(~held_out), data.of(~held_out), covariates.patients[needed])
            likelihoods[held_out, column] = table[patient_of_row, data.actions[held_out]]
    shares = np.full(len(learners), 1 / len(learners))
    known = likelihoods.min(axis=1) > 0  # a treatment may be in one part alone
    likelihoods, sizes = likelihoods[known], data.sizes[known]
    for _ in range(STEPS if known.any() else 0):  # expectation and maximisation: the likelihood of a mixture is concave
        weighted = likelihoods * shares
        shares = sizes @ (weighted / weighted.sum(axis=1, keepdims=True)) / sizes.sum()
    mixture: FloatArray = sum(
        share * _fitted(learner, covariates, data, wanted) for share, learner in zip(shares, learners, strict=True)
    )
    return mixture


# A classifier, and what makes its columns of the covariates.
Learner: TypeAlias = tuple[Any, Callable[[FloatArray], FloatArray]]


def _learners() -> list[Learner]:
    """What is stacked; scikit-learn is imported here, as that takes a second."""
    with optional():
        from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    logistic = LogisticRegression(max_iter=10_000)
    trees = HistGradientBoostingClassifier(**CLASSIFYING_TREES)
    return [(logistic, np.asarray), (logistic, with_products), (trees, np.asarray)]


def _fitted(learner: Learner, covariates: Covariates, data: LoggedData, wanted: FloatArray) -> FloatArray:
    """One of the stacked models, fitted to some rows, on the wanted patients; equal rows are one row with a weight."""
    model, columns = learner
    cells, cell_of_row = np.unique(covariates.groups * data.n_actions + data.actions, return_inverse=True)
    table = np.zeros((len(wanted), data.n_actions))
    with one_thread():
        patients = columns(covariates.patients[cells // data.n_actions])
        weights = np.bincount(cell_of_row, data.counts)
        # Of equal weights scikit-learn finds the bins of numbers many times as fast without them.
        model.fit(patients, cells % data.n_actions, None if (weights == 1).all() else weights)
        for start in range(0, len(wanted), BLOCK):
            rows = np.arange(start, min(start + BLOCK, len(wanted)))
            table[np.ix_(rows, model.classes_)] = model.predict_proba(columns(wanted[rows]))
    return table


def _folds(data: LoggedData) -> IntArray:
    """The part of each row, the same in every run; each treatment is spread evenly over them, so that all have it."""
    sizes = np.bincount(data.actions, minlength=data.n_actions)
    alone = [name for name, size in zip(data.names, sizes, strict=True) if size == 1]
    if alone:
        raise DataError(f'propensity = "estimate" needs at least two patients of each treatment, {alone[0]} has one')
    if np.count_nonzero(sizes) < 2:
        raise DataError(ONE_TREATMENT)
    return dealt_parts(data.actions, FOLDS, data.clusters)


def dealt_parts(actions: IntArray, n_folds: int = FOLDS, clusters: IntArray | None = None) -> IntArray:
    """The part of each row; each treatment (or other code) is spread evenly over them, or whole clusters are."""
    folds = np.empty(len(actions), dtype=np.intp)
    rng = np.random.default_rng(0)
    if clusters is not None:
        return folds_of_clusters(clusters, actions, n_folds, rng)
    for action in np.unique(actions):
        rows = actions == action
        folds[rows] = rng.permutation(int(rows.sum())) % n_folds
    return folds


def counted_parts(
    actions: IntArray, counts: IntArray, names: Sequence[str], *, estimated: bool = True
) -> tuple[IntArray, IntArray, IntArray]:
    """Rows that stand for so many patients each, divided among the parts: each patient falls into one by chance.

    Returns
    -------
    rows, parts, counts : array, (m,)
        Which row each was, its part, and how many patients of the row are in it. The same in every run.

    Raises
    ------
    DataError
        Where propensities are `estimated`, for a treatment all of whose patients are in one part: no model can be
        fitted without it.
    """
    dealt = np.random.default_rng(0).multinomial(counts, np.full(FOLDS, 1 / FOLDS))
    for action in np.unique(actions) if estimated else ():
        sizes = dealt[actions == action].sum(axis=0)
        if np.count_nonzero(sizes) == 1:
            raise DataError(
                f'propensity = "estimate" needs more patients of each treatment, {names[action]} has {sizes.sum()}'
            )
    if estimated and len(np.unique(actions)) < 2:
        raise DataError(ONE_TREATMENT)
    rows, parts = np.nonzero(dealt)
    return rows, parts, dealt[rows, parts]
