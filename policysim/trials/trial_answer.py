"""The answer of a log, as tables: arms given to all, then policies against one of them. Numbers are looked up there.

The tables of cells (row, option, epsilon, value, low, high, format) are "options", "facts", "examples" and, where a
group is told to lose, "who"; "columns" gives their order, "certainty" the verdicts, and "names" what has words and no
number. All others have named columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from policies.arrays import FloatArray
from policies.catalogue import mechanism_words
from policies.optimal.optimum import Optimal
from policies.problem import DecisionProblem
from policies.reference import Greedy
from policysim.logs.load_log import Log
from policysim.logs.log_source import CHOSEN, ESTIMATE, lot_words, outcome_formula
from policysim.numbers import NEGLIGIBLE, written
from policysim.study.cells import COLUMNS, as_cells
from policysim.study.certainty import BETTER, UNTOLD, verdict_of_interval
from policysim.study.checks import LEVEL, Z
from policysim.study.declared import LoggedStudy
from policysim.study.example_patients import example_patients, example_probabilities
from policysim.study.gain import prove_loss
from policysim.study.labels import hidden, level_in_words, public_knowledge
from policysim.study.options_table import (
    EACH,
    PRIVATE,
    RIGHT,
    TEXTBOOK,
    exponential_options,
    fitted_odds,
    nobody_pays,
    private_choices,
)
from policysim.trials.diagnostics import IMBALANCE, imbalance_by_chance
from policysim.trials.evidence import LEAST_P, POWER
from policysim.words import ALL, capital

PRODUCTS_SHOWN = 10
COUNT, ROUNDED = "counted 1 0", "rounded"
VALUE, DIFFERENCE, PATIENTS = "value", "difference", "patients"
NAN = math.nan
# Below it two decimals show nothing of a p-value.
HALF_OF_LAST = 0.005
TITLES = {EACH: "each's best, not private", PRIVATE: "best private choice*"}
NOT_RANDOMISED = "not randomised (propensities estimated)"
# What is done with patients without an outcome.
MISSING = {"refuse": "", "exclude": "left out", "worst": "counted as the worst"}
BY_CROSS_VALIDATION = (
    "The mean or a regression, without or with products, as cross-validation chooses and shrinks it: a"
)
# Letters of what people named: an arm in a table and in a line, a group, an outcome, its column, the study, a warning.
IN_TABLE, IN_LINE, A_GROUP, AN_OUTCOME, A_COLUMN, A_TITLE, A_WARNING = 36, 24, 32, 100, 12, 190, 190
# Where more arms take lines, the study's title has one.
FEW_ARMS, ONE_LINE = 4, 100


def trial_tables(
    study: LoggedStudy,
    log: Log,
    problem: DecisionProblem,
    tables: Mapping[str, pd.DataFrame],
    comparison: pd.DataFrame,
    *,
    warnings: Sequence[str] = (),
    told: bool = True,
) -> dict[str, pd.DataFrame]:
    """Put arms and policies side by side, and judge each difference by its interval.

    Parameters
    ----------
    study : LoggedStudy
    log : Log
    problem : DecisionProblem
        Fitted to the whole log.
    tables : mapping of str to DataFrame
        From `policysim.trials.trial_question.tables_behind`.
    comparison : DataFrame
        From `compare_log`, with the references and `Exponential` among its policies.
    warnings : sequence of str, optional
        What may be wrong with the log, and which policies are left out.
    told : bool, optional
        Whether anything can be told: not where errors that no interval covers have left signs in the log.

    Returns
    -------
    dict of str to DataFrame
        options : cells of the rows "value", "patients", "outcome: NAME", "difference" and "right guesses". Arms have no
            epsilon.
        columns : option, epsilon, policy, title, section ("arm" or "policy") and stated, in the order of the screen.
        certainty : option, section, epsilon, than, value, low, high, verdict: of each policy against one arm, and of
            the arm with the best mean against each other.
        examples : cells of what the private choice gives example patients: row is the patient, option the arm.
        facts, names, who : see the module.
        policies, arms, ... : of each of `tables` its numbers as cells, with the `title` of each row; and "method".
    """
    scale = 100 if log.data.is_binary else 1
    outcome = next((name for name, each in log.outcomes.items() if np.array_equal(each, log.data.rewards)), "utility")
    arms = tables["arms"].set_index("arm")
    main = arms[arms["outcome"] == outcome]
    everyone = comparison[comparison["group"] == ALL].set_index(["policy", "epsilon"])
    columns = _columns(study, main, everyone)
    policies = columns[columns["section"] == "policy"].join(everyone, on=["policy", "epsilon"])
    certainty = _certainty(policies, main, told=told)
    who = _who_loses(log, comparison, columns, scale) if told else pd.DataFrame()
    options = _options(policies, arms, outcome=outcome, log=log, scale=scale)
    odds = fitted_odds(problem) if TEXTBOOK in set(policies["option"]) else ""
    found = {
        **_listed(study, problem, tables, options),
        "options": options,
        "columns": columns,
        "certainty": certainty,
        "examples": _examples(study, problem, columns),
        "facts": _facts(study, log, tables, columns, certainty, scale=scale),
        "names": _names(
            study,
            log,
            tables,
            certainty,
            warnings,
            comparison=comparison,
            outcome=outcome,
            odds=odds,
            told=told,
        ),
    }
    return found if who.empty else {**found, "who": who}


def _columns(study: LoggedStudy, main: pd.DataFrame, everyone: pd.DataFrame) -> pd.DataFrame:
    """Arms, each's best, and at each epsilon the private policy of the study that is best by the fitted scores."""
    best = private_choices(everyone.reset_index(), study.policies, by="fitted_value")
    epsilons = sorted(best)
    given = {EACH: dict.fromkeys(epsilons, Greedy.name), PRIVATE: best}
    titles = dict(TITLES)
    for option, title, policy in exponential_options(everyone.index.unique("policy")):
        if option == TEXTBOOK or set(best.values()) != {policy}:
            given[option], titles[option] = dict.fromkeys(epsilons, policy), title
    rows: list[tuple[str, float, str, str, str, bool]] = [
        (arm, NAN, "", _short(arm, IN_TABLE), "arm", True) for arm in map(str, main.index)
    ]
    rows += [
        (option, epsilon, policies[epsilon], titles[option], "policy", epsilon == study.epsilon)
        for option, policies in given.items()
        for epsilon in epsilons
    ]
    return pd.DataFrame(rows, columns=["option", "epsilon", "policy", "title", "section", "stated"])


def _options(policies: pd.DataFrame, arms: pd.DataFrame, *, outcome: str, log: Log, scale: int) -> pd.DataFrame:
    """All cells of arms and policies; a row has one precision."""
    rows: list[tuple[str, str, float, float, float, float, str]] = []
    for name, own in arms.groupby("outcome", sort=False):
        count = scale if name == outcome else _scale(log.outcomes[str(name)])
        style = f"counted {count} {_places(count * (own['high'] - own['low']), widest=False)}"
        row = VALUE if name == outcome else f"outcome: {name}"
        rows += [(row, arm, NAN, *ends, style) for arm, ends in _with_intervals(own).items()]
        if name == outcome:
            value_style = style
            rows += [(PATIENTS, str(arm), NAN, float(n), NAN, NAN, COUNT) for arm, n in own["rows"].items()]
            rows += [(RIGHT, str(arm), NAN, 0.5, NAN, NAN, "right") for arm in own.index]
    width = (policies["difference_high"] - policies["difference_low"])[policies["stated"]]
    change = f"change {scale} {_places(scale * width, widest=True)}"
    for row, style in ((VALUE, value_style), (DIFFERENCE, change)):
        cells = policies[["option", "epsilon", row, f"{row}_low", f"{row}_high"]]
        rows += [(row, *each, style) for each in cells.itertuples(index=False, name=None)]
    guesses = policies[["option", "epsilon", "guess_rate"]].itertuples(index=False, name=None)
    rows += [(RIGHT, *each, NAN, NAN, "right") for each in guesses]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _with_intervals(arms: pd.DataFrame) -> dict[str, tuple[float, float, float]]:
    """The mean of each arm with the ends of its interval."""
    return {str(arm): (mean, low, high) for arm, mean, low, high in arms[["mean", "low", "high"]].itertuples(name=None)}


def _scale(values: FloatArray) -> int:
    """What the mean of an outcome is counted among: of 100 patients, if each has it or not."""
    return 100 if np.isin(values[np.isfinite(values)], (0.0, 1.0)).all() else 1


def _places(widths: pd.Series, *, widest: bool) -> int:
    """The decimals at which half of the narrowest interval, or of the widest, has two digits."""
    halves: FloatArray = widths.to_numpy(dtype=np.float64) / 2
    halves = halves[halves > NEGLIGIBLE]
    if not halves.size:
        return 1
    return min(6, max(0, 1 - math.floor(math.log10(halves.max() if widest else halves.min()))))


def _certainty(policies: pd.DataFrame, main: pd.DataFrame, *, told: bool) -> pd.DataFrame:
    ends = ["difference", "difference_low", "difference_high"]
    rows = list(policies[["option", "section", "epsilon", "best_arm", *ends]].itertuples(index=False, name=None))
    arms = _with_intervals(main.sort_values("mean", ascending=False, kind="stable"))
    best, *others = arms
    rows += [(best, "arm", NAN, arm, *difference_of_means(arms[best], arms[arm])) for arm in others]
    found = pd.DataFrame(rows, columns=["option", "section", "epsilon", "than", "value", "low", "high"])
    verdicts = [verdict_of_interval(low, high) if told else UNTOLD for low, high in found[["low", "high"]].to_numpy()]
    return found.assign(verdict=verdicts)


def difference_of_means(
    one: tuple[float, float, float], other: tuple[float, float, float]
) -> tuple[float, float, float]:
    """The difference of two independent means, each given with its interval, and the interval of the difference.

    By squaring and adding the reaches of the two intervals (Newcombe 1998, Statistics in Medicine 17:873, method 10;
    Zou & Donner 2008). That the best of several arms is better than the second needs no correction for having been
    picked (Gutmann & Maymin 1987).

    Examples
    --------
    >>> difference_of_means((0.9, 0.86, 0.93), (0.5, 0.47, 0.54))
    (0.4, 0.343..., 0.442...)
    """
    (mean, low, high), (its, its_low, its_high) = one, other
    below, above = math.hypot(mean - low, its_high - its), math.hypot(high - mean, its - its_low)
    return mean - its, mean - its - below, mean - its + above


def _who_loses(log: Log, comparison: pd.DataFrame, columns: pd.DataFrame, scale: int) -> pd.DataFrame:
    """At each epsilon the group that a private choice is surest to harm: cells, and its name; no rows where none is.

    All groups together are wrong in at most 5 % (Bonferroni): the reaches of their own intervals are stretched.
    """
    rows = []
    for epsilon, policy in columns.loc[columns["option"].eq(PRIVATE), ["epsilon", "policy"]].itertuples(index=False):
        mine = comparison[(comparison["policy"] == policy) & (comparison["epsilon"] == epsilon)]
        groups = mine[mine["group"] != ALL].dropna(subset=["difference_low", "difference_high"])
        if groups.empty:
            continue
        stretch = NormalDist().inv_cdf(1 - (1 - LEVEL) / 2 / len(groups)) / Z
        value = groups[DIFFERENCE]
        low, high = (value + stretch * (groups[f"{DIFFERENCE}{end}"] - value) for end in ("_low", "_high"))
        place = int(high.to_numpy().argmin())
        if high.iloc[place] >= 0:
            continue
        group, level, share = groups[["group", "level", "share"]].iloc[place]
        name = _short(level_in_words(log.space, group, level), A_GROUP)
        style = f"change {scale} {_places(scale * (high - low).iloc[[place]], widest=True)}"
        ends = (float(each.iloc[place]) for each in (value, low, high))
        rows += [
            ("share", "", epsilon, float(share), NAN, NAN, "percent", name),
            ("group", PRIVATE, epsilon, *ends, style, name),
        ]
    return pd.DataFrame(rows, columns=[*COLUMNS, "name"])


def _examples(study: LoggedStudy, problem: DecisionProblem, columns: pd.DataFrame) -> pd.DataFrame:
    """What the private choice gives example patients at each epsilon, exactly."""
    examples = example_patients(problem, study.illness)
    given = []
    private = columns[columns["option"].eq(PRIVATE) & columns["section"].eq("policy")]
    for policy, rows in private.groupby("policy"):
        given.append(example_probabilities(problem, examples, [study.policy(str(policy))], rows["epsilon"].tolist()))
    titles = {each.label: f"{each.label}: {problem.records.describe(each.record)}" for each in examples}
    found = pd.concat(given).sort_values("epsilon", kind="stable", ignore_index=True)
    cells = found.rename(columns={"patient": "row", "action": "option", "probability": "value"})
    return written(as_cells(cells.assign(format="percent", title=cells["row"].map(titles)), "title"))


def _listed(
    study: LoggedStudy, problem: DecisionProblem, tables: Mapping[str, pd.DataFrame], options: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """Tables with named columns as cells, each column an option; those of the fitted scores; no empty ones."""
    styles = options.drop_duplicates("row").set_index("row")["format"]
    value, change = styles[VALUE], styles[DIFFERENCE]
    of_arm = [styles.get(f"outcome: {name}", value) for name in tables["arms"]["outcome"]]
    least_loss = prove_loss(problem, study.epsilon).least_loss if Optimal.name in study.policies else NAN
    method = {
        "possible records by the declared features": (problem.n_records, COUNT),
        "a score moves between two neighbours by at most (Δ)": (problem.sensitivity.value, "up 3"),
        "a difference of two scores moves by at most (Γ)": (problem.sensitivity.range, "up 3"),
        "no mechanism that gives what it publishes loses less, by these scores, than": (least_loss, "down 3"),
    }
    of_scores = pd.DataFrame([(what, *each) for what, each in method.items()], columns=["what", "value", "format"])
    of_scores = of_scores.dropna(subset="value")
    counts = dict.fromkeys(("patients", "censored", "followed"), COUNT)
    of_policies = {"value": value, **dict.fromkeys(("difference", "difference_low", "difference_high"), change)}
    of_policies |= {"benefit_kept": "percent", "epsilon_spent": ROUNDED, "surely_from": ROUNDED}
    listed: dict[str, tuple[pd.DataFrame, list[str], dict[str, Any]]] = {
        "policies": (
            tables["policies"],
            ["policy"],
            {**of_policies, "break_even_gain": change.replace("change", "possible")},
        ),
        "arms": (
            tables["arms"],
            ["outcome", "arm"],
            {"rows": COUNT, "missing": COUNT, **dict.fromkeys(("mean", "low", "high"), of_arm)},
        ),
        "patients": (tables["patients"], ["what"], {"patients": COUNT}),
        "censoring": (tables["censoring"], ["arm"], counts),
        "balance": (_plainest(tables["balance"]), ["feature", "level"], dict.fromkeys(("before", "after"), "places 2")),
        "heterogeneity": (
            tables["heterogeneity"],
            ["what"],
            {**dict.fromkeys(("slope", "p", "p_low", "p_high"), ROUNDED), "splits": COUNT},
        ),
        "power": (
            tables["power"],
            ["what"],
            {**dict.fromkeys(("gain", "standard_error"), change.replace("change", "counted")), "patients": ROUNDED},
        ),
        "e-value": (
            tables["e-value"],
            ["better", "other", "of"],
            dict.fromkeys(("ratio", "value", "at_limit"), ROUNDED),
        ),
        "method": (of_scores, ["what"], {"value": of_scores["format"]}),
    }
    return {name: _as_cells(*each) for name, each in listed.items() if not each[0].empty}


def _plainest(balance: pd.DataFrame) -> pd.DataFrame:
    """The features, and of the products of two those that differ most."""
    products = balance["feature"].str.contains(" × ", regex=False)
    return pd.concat([balance[~products], balance[products].nlargest(PRODUCTS_SHOWN, "after")])


def _as_cells(table: pd.DataFrame, keys: list[str], formats: Mapping[str, str | Sequence[str]]) -> pd.DataFrame:
    """A table with named columns as cells: a row is called by what stands under its keys, an option is a column."""
    names = [": ".join(filter(None, map(str, each))) for each in table[keys].to_numpy()]
    parts = [
        pd.DataFrame({"row": names, "option": column, "value": table[column].to_numpy(np.float64), "format": style})
        for column, style in formats.items()
    ]
    cells = pd.concat(parts, ignore_index=True)
    return as_cells(cells.assign(title=cells["row"]), "title")


def _facts(
    study: LoggedStudy,
    log: Log,
    tables: Mapping[str, pd.DataFrame],
    columns: pd.DataFrame,
    certainty: pd.DataFrame,
    *,
    scale: int,
) -> pd.DataFrame:
    """Single numbers that words need, as cells; what is none has no cell."""
    patients = tables["patients"].set_index("what")["patients"]
    arms = certainty[certainty["section"] == "arm"]
    counts = {
        "used": log.data.n_patients,
        "unread": study.log.unread,
        "untreated": patients["without a treatment"],
        "missing": patients["without an outcome"],
        "censored": log.censored["censored"].sum(),
        # Besides the arm with the best mean and the one after it.
        "more arms": int((arms["verdict"] != BETTER).sum()) - 1,
    }
    rows = [(row, float(value), COUNT) for row, value in counts.items() if value > 0]
    rows += [("epsilon", study.epsilon, "plain"), ("hundred", 100.0, "plain")]
    least_outcome, largest_outcome = study.log.utility_range
    rows += [("least outcome", least_outcome, "plain"), ("largest outcome", largest_outcome, "plain")]
    rows += [("confidence", LEVEL, "percent"), ("power", POWER, "percent")]
    if scale == 100:
        rows.append(("of", 100.0, "plain"))
    if len(tables["power"]):
        least = scale * float(tables["power"]["gain"].iloc[0])
        rows.append(("least gain", least, f"places {_places(pd.Series([2 * least]), widest=True)}"))
    test = tables["heterogeneity"].iloc[0]
    for name in ("p", "p_low", "p_high"):
        p = float(test[name])
        rows.append((name, max(p, LEAST_P), f"places {2 if p >= HALF_OF_LAST else 3}"))
    balance = tables["balance"]
    rows.append(("features", float(len(balance)), COUNT))
    rows.append(("imbalanced", float((balance["after"] > IMBALANCE).sum()), COUNT))
    rows.append(("by chance", len(balance) * imbalance_by_chance(log.data), "rounded"))
    facts = pd.DataFrame(rows, columns=["row", "value", "format"])
    epsilons = columns["epsilon"].dropna().unique()
    at = pd.DataFrame({"row": "at", "epsilon": epsilons, "value": epsilons, "format": "plain"})
    return pd.concat([as_cells(facts), as_cells(at)], ignore_index=True)


def _names(
    study: LoggedStudy,
    log: Log,
    tables: Mapping[str, pd.DataFrame],
    certainty: pd.DataFrame,
    warnings: Sequence[str],
    *,
    comparison: pd.DataFrame,
    outcome: str,
    odds: str,
    told: bool,
) -> pd.DataFrame:
    """What words name: each a text by its key."""
    source, binary = study.log, log.data.is_binary
    test = tables["heterogeneity"].iloc[0]
    rivals = certainty[certainty["section"] == "arm"]
    not_worse = rivals[rivals["verdict"] != BETTER]
    best, second = (rivals if not_worse.empty else not_worse)[["option", "than"]].iloc[0]
    means = tables["arms"].pivot_table(index="arm", columns="outcome", values="mean", sort=False)
    # What is counted the other way round says nothing more.
    others = [each for each in means if each != outcome and not np.allclose(means[each], 1 - means[outcome])]
    names = {
        "name": study.title,
        "seen": study.seen,
        "each": EACH,
        "title": _short(study.title, A_TITLE if len(means) <= FEW_ARMS else ONE_LINE),
        "outcome": _short(source.outcome_title or outcome_formula(source), AN_OUTCOME),
        **({"fitted odds": odds} if odds else {}),
        "success": "Success" if binary else "Outcome",
        "unit": "successes" if binary else "in the mean outcome",
        "head": "successes" if binary else "mean outcome",
        "Head": "Successes" if binary else "Mean outcome",
        "allocated": _allocated(source.propensity),
        "missing": MISSING[source.missing],
        "best arm": best,
        "best": capital(_short(best, IN_LINE), [_short(arm, IN_LINE) for arm in map(str, means.index)]),
        "second": _short(second, IN_LINE),
        "p is": "p <" if test["p"] < LEAST_P else "p =",
        **{f"{end} is": "under " if test[end] < LEAST_P else "" for end in ("p_low", "p_high")},
        "effects": "signs" if test["signs"] and told else "cannot be told",
        "unpaid": nobody_pays(comparison, "can be told to lose by a private choice"),
        "study": study.name,
        "data": ", ".join(path.name for path in source.files.values()),
        "seed": str(study.seed),
        "formula": outcome_formula(source),
        "propensity": source.propensity if isinstance(source.propensity, str) else lot_words(source.propensity),
        "model": BY_CROSS_VALIDATION if source.outcome_model == CHOSEN else f"The {source.outcome_model}",
        "hidden": capital(hidden(study)),
        "hidden from": study.hidden_from,
        "public": public_knowledge(study),
        **{f"mechanism {name}": f"{name}: {mechanism_words(name)}" for name in study.policies},
        **{f"caveat {place}": each for place, each in enumerate(warnings)},
        **{f"warning {place}": _short(each, A_WARNING) for place, each in enumerate(warnings)},
    }
    if others:
        names |= {"further": str(others[0]), "further title": _short(str(others[0]).replace("_", " "), A_COLUMN)}
    return pd.DataFrame(names.items(), columns=["key", "text"])


def _allocated(propensity: str | tuple[float, ...]) -> str:
    """How patients got their treatments."""
    lot = lot_words(propensity)
    if lot:
        return f"randomised {lot}"
    return NOT_RANDOMISED if propensity == ESTIMATE else "with the probabilities of their treatments"


def _short(text: str, letters: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= letters else f"{text[: letters - 1].rstrip()}…"
