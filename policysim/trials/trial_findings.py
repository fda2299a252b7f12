"""What a comparison on a log shows: options with letters, differences with verdicts, who is harmed, what leaks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pandas as pd

from policies.arrays import FloatArray
from policies.catalogue import CATALOGUE
from policies.exponential import Exponential, ExponentialFitted
from policies.optimal.optimum import Optimal
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Greedy
from policysim.logs.load_log import Log
from policysim.logs.log_source import ESTIMATE
from policysim.numbers import NEGLIGIBLE
from policysim.report.findings import BETTER, NOT_SHOWN, UTILITY, Findings, verdict_of_interval
from policysim.study.checks import LEVEL, Z
from policysim.study.declared import LoggedStudy
from policysim.study.example_patients import example_patients, example_probabilities
from policysim.study.gain import private_choices, prove_loss
from policysim.study.labels import level_in_words
from policysim.trials.arms import arms_of
from policysim.trials.diagnostics import (
    IMBALANCE,
    LogCaveats,
    balance_of,
    imbalance_by_chance,
    log_caveats,
    propensities_of,
)
from policysim.trials.evidence import confounding_needed, heterogeneity, power_of
from policysim.words import ALL, guesses

# The letters of the options, and those of policies that were asked for by name.
SAME, PRIVATE, EACH, NAMED = "A", "B", "C", ("D", "E", "F")
# What a row of the options and of their differences is about: an option with a letter, one arm, or a mechanism that
# stands in the trace alone.
OPTION, ARM, TRACE = "option", "arm", "trace"
EVERYTHING, UP_TO, NOTHING = "everything", "up to ε", "nothing"
TITLES = {SAME: "One arm for everyone", PRIVATE: "Best private draw", EACH: "Best for each patient"}
IN_TRACE = {
    ExponentialFitted.name: "exponential mechanism, fitted",
    Exponential.name: "exponential mechanism of the textbook",
}
# Of a comparison, what stands beside each policy.
OF_POLICIES = ("value", "difference", "difference_low", "difference_high", "benefit_kept", "epsilon_spent")


@dataclass(frozen=True, eq=False, kw_only=True)
class TrialDetails:
    """What is found of a trial beside the core of its findings.

    Attributes
    ----------
    patients, untreated, missing, censored, unread : int
        How many patients are used, have no treatment, have no outcome, and are followed for less than the horizon; how
        many guesses of the study's file nobody has read.
    counted_of : int
        What the mean outcome is counted among: 100 where each patient has it or not, else 1.
    outcome : str
        Its name in `Findings.differences`; of another one in the table of arms, `further` is the name, or "".
    doubted : bool
        Whether the log has signs of errors that no interval covers: then nothing is concluded.
    best_arm : str
        The arm with the best mean.
    rivals, worse : tuple of str
        The arms of which the data cannot show that they are worse, best first, and those that they show to be worse.
    least_gain : float
        What choosing for each patient must gain for 8 of 10 such trials to find it; NaN where it never differs from A.
    signs : bool
        Whether there are signs that treatments do more for some patients than for others.
    p, p_low, p_high : float
        Of that test; between the latter two lie the p-values of most single splits.
    imbalanced, expected_by_chance : float
        How many features differ between arms after weighting, and how many would by chance alone.
    tables : mapping of str to DataFrame
        By the names of their files: arms, patients, censoring, balance, propensities, policies, heterogeneity, power,
        e-value, scores and examples; what does not apply has no rows.
    unplaced : tuple of str
        Policies that were asked for by name, and for which there is no letter.
    """

    patients: int
    untreated: int
    missing: int
    censored: int
    unread: int
    counted_of: int
    outcome: str
    further: str
    doubted: bool
    best_arm: str
    rivals: tuple[str, ...]
    worse: tuple[str, ...]
    least_gain: float
    signs: bool
    p: float
    p_low: float
    p_high: float
    imbalanced: float
    expected_by_chance: float
    tables: Mapping[str, pd.DataFrame]
    unplaced: tuple[str, ...] = ()


def find(
    study: LoggedStudy,
    log: Log,
    problem: DecisionProblem,
    compared: pd.DataFrame,
    left_out: Sequence[str] = (),
    *,
    named: Sequence[str] = (),
    doubts: LogCaveats | None = None,
) -> Findings:
    """What a comparison on a log shows: each number that screen and page print.

    Parameters
    ----------
    study : LoggedStudy
    log : Log
    problem : DecisionProblem
        Fitted to the whole log.
    compared : DataFrame
        From `compare_log`, with the references and `Exponential` among its policies.
    left_out : sequence of str, optional
        Which policies could not be used, and why.
    named : sequence of str, optional
        Policies that were asked for by name.
    doubts : LogCaveats, optional
        What may be wrong with the log; by default what `log_caveats` finds. Beside errors nothing is shown.
    """
    doubts = log_caveats(log, study.log) if doubts is None else doubts
    doubted = bool(doubts.errors)
    everyone = compared[compared["group"] == ALL].set_index(["policy", "epsilon"])
    lettered, unplaced = _lettered(study, everyone, named)
    outcome = next((name for name, values in log.outcomes.items() if np.array_equal(values, log.data.rewards)), UTILITY)
    arms = arms_of(log, study.log)
    main = arms[arms["outcome"] == outcome]
    options = _options(lettered, everyone, main)
    differences = _differences(options, everyone, main, outcome, doubted=doubted)
    details = _details(
        study,
        log,
        problem,
        everyone,
        arms,
        options=options,
        differences=differences,
        outcome=outcome,
        doubted=doubted,
        unplaced=unplaced,
    )
    harmed = _harmed(log, compared, options)
    unread = f"{study.log.unread} guesses marked # CHECK are unread: what follows is only as good as they are."
    return Findings(
        options=options,
        differences=differences,
        harmed=harmed.iloc[:0] if doubted else harmed,
        leaks=_leaks(options),
        warnings=(
            *([unread] if study.log.unread else []),
            *doubts.errors,
            *doubts.others,
            *(f"left out: {reason}" for reason in left_out),
        ),
        details=details,
    )


class Lettered(NamedTuple):
    """An option: its letter (in the trace its name), its title, and its policy at each epsilon."""

    section: str
    option: str
    title: str
    policies: Mapping[float, str]


def _lettered(
    study: LoggedStudy, everyone: pd.DataFrame, named: Sequence[str]
) -> tuple[list[Lettered], tuple[str, ...]]:
    """The options, then the mechanisms of the trace; and the policies without a letter.

    B is at each epsilon the private policy of the study that is best by the fitted scores, which have no part in its
    estimates.
    """
    best = private_choices(everyone.reset_index(), study.policies, by="fitted_value")

    def always(name: str) -> dict[float, str]:
        return dict.fromkeys(sorted(best), name)

    made = [
        Lettered(OPTION, SAME, TITLES[SAME], always(BestFixed.name)),
        Lettered(OPTION, PRIVATE, TITLES[PRIVATE], dict(sorted(best.items()))),
        Lettered(OPTION, EACH, TITLES[EACH], always(Greedy.name)),
    ]
    others = [name for name in named if name not in {BestFixed.name, Greedy.name, best[study.epsilon]}]
    made += [Lettered(OPTION, letter, name, always(name)) for letter, name in zip(NAMED, others, strict=False)]
    shown = set(others[: len(NAMED)]) | (set(best.values()) if len(set(best.values())) == 1 else set())
    present = everyone.index.unique("policy")
    made += [
        Lettered(TRACE, title, title, always(name))
        for name, title in IN_TRACE.items()
        if name in present and name not in shown
    ]
    return made, tuple(others[len(NAMED) :])


def _options(lettered: Sequence[Lettered], everyone: pd.DataFrame, main: pd.DataFrame) -> pd.DataFrame:
    """A row for each option and epsilon, and then for each arm."""
    keys = [
        (each.section, each.option, each.title, policy, epsilon)
        for each in lettered
        for epsilon, policy in each.policies.items()
    ]
    options = pd.DataFrame(keys, columns=["section", "option", "title", "policy", "epsilon"])
    numbers = everyone.loc[list(zip(options["policy"], options["epsilon"], strict=True))].reset_index()
    spent = numbers["epsilon_spent"]
    hides = np.select([spent < NEGLIGIBLE, spent < math.inf], [EVERYTHING, UP_TO], NOTHING)
    # Where an exact rate would take too long, the loss bounds it.
    rates = numbers["guess_rate"].fillna(spent.map(guesses))
    options = options.assign(hides=hides, value=numbers["value"], low=numbers["value_low"], high=numbers["value_high"])
    options = options.assign(told_apart=rates, epsilon_spent=spent, benefit_kept=numbers["benefit_kept"])
    arms = main.rename(columns={"arm": "option", "mean": "value", "rows": "patients"}).drop(
        columns=["outcome", "missing"]
    )
    arms = arms.assign(
        section=ARM, title=arms["option"], policy="", hides=EVERYTHING, told_apart=0.5, epsilon_spent=0.0
    )
    return pd.concat([options, arms.astype({"option": str, "title": str})], ignore_index=True)


def _differences(
    options: pd.DataFrame, everyone: pd.DataFrame, main: pd.DataFrame, outcome: str, *, doubted: bool
) -> pd.DataFrame:
    """Each option against A, B against C, and the arm with the best mean against each other."""
    rows: list[tuple[str, float, str, str, float, float, float]] = []
    other = options[(options["section"] != ARM) & (options["option"] != SAME)]
    for section, option, policy, epsilon in other[["section", "option", "policy", "epsilon"]].itertuples(index=False):
        row = everyone.loc[(policy, epsilon)]
        ends = row["difference"], row["difference_low"], row["difference_high"]
        rows.append((section, epsilon, option, SAME, *ends))
        if option == PRIVATE:
            rows.append((section, epsilon, option, EACH, *(0 - row[end] for end in ("loss", "loss_high", "loss_low"))))
    means = _with_intervals(main.sort_values("mean", ascending=False, kind="stable"))
    best, *others = means
    rows += [(ARM, math.nan, best, arm, *difference_of_means(means[best], means[arm])) for arm in others]
    found = pd.DataFrame(rows, columns=["section", "epsilon", "option", "than", "value", "low", "high"])
    found.insert(4, "outcome", outcome)
    verdicts = [
        NOT_SHOWN if doubted else verdict_of_interval(low, high) for low, high in found[["low", "high"]].to_numpy()
    ]
    return found.assign(verdict=verdicts)


def _with_intervals(arms: pd.DataFrame) -> dict[str, tuple[float, float, float]]:
    """The mean of each arm with the ends of its interval."""
    ends = arms.set_index("arm")[["mean", "low", "high"]]
    return {str(arm): (mean, low, high) for arm, mean, low, high in ends.itertuples(name=None)}


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


def _harmed(log: Log, compared: pd.DataFrame, options: pd.DataFrame) -> pd.DataFrame:
    """The groups that an option harms instead of A, surely, at each epsilon: how much less they have.

    All groups of an option together are wrong in at most 5 % (Bonferroni): their intervals are stretched.
    """
    lettered = options.loc[
        (options["section"] == OPTION) & (options["option"] != SAME), ["epsilon", "option", "policy"]
    ]
    groups = compared[compared["group"] != ALL].dropna(subset=["difference_low", "difference_high"])
    table = lettered.merge(groups, on=["policy", "epsilon"])
    tested = table.groupby(["epsilon", "option"])["group"].transform("size")
    stretch = tested.map(lambda number: NormalDist().inv_cdf(1 - (1 - LEVEL) / 2 / number) / Z)
    high = table["difference"] + stretch * (table["difference_high"] - table["difference"])
    low = table["difference"] + stretch * (table["difference_low"] - table["difference"])
    table = table.assign(than=SAME, value=-table["difference"], low=-high, high=-low)[high < 0]
    table["group"] = [level_in_words(log.space, *pair) for pair in zip(table["group"], table["level"], strict=True)]
    table = table.sort_values(["option", "epsilon", "value"], ascending=[True, True, False], kind="stable")
    return table[["epsilon", "option", "than", "group", "share", "value", "low", "high"]].reset_index(drop=True)


def _leaks(options: pd.DataFrame) -> pd.DataFrame:
    """Who tells two patients apart that must look alike, by the treatment that one of them gets; a coin toss: half."""
    lettered = options[options["section"] == OPTION]
    found = lettered[["epsilon", "option"]].assign(belief="which of two patients", among="", before=0.5, low=0.5)
    return found.assign(high=lettered["told_apart"]).reset_index(drop=True)


def _details(
    study: LoggedStudy,
    log: Log,
    problem: DecisionProblem,
    everyone: pd.DataFrame,
    arms: pd.DataFrame,
    *,
    options: pd.DataFrame,
    differences: pd.DataFrame,
    outcome: str,
    doubted: bool,
    unplaced: tuple[str, ...],
) -> TrialDetails:
    now = everyone.xs(study.epsilon, level="epsilon")
    low, high = study.log.utility_range
    spread = None if study.log.guessed_range else high - low
    power = power_of(float(now["difference_se"][Greedy.name]), log.data.n_patients, spread)
    test = heterogeneity(log, study)
    effects = test.iloc[0]
    balance = balance_of(log, products=study.log.propensity == ESTIMATE)
    against = differences[differences["section"] == ARM]
    best = str(against["option"].iloc[0])
    means = arms.pivot_table(index="arm", columns="outcome", values="mean", sort=False)
    # What is counted the other way round says nothing more.
    others = [str(name) for name in means if name != outcome and not np.allclose(means[name], 1 - means[outcome])]
    patients = {
        "read": log.n_read,
        "without a treatment": log.n_untreated,
        "without an outcome": sum(log.missing),
        "used": log.data.n_patients,
    }
    needed = confounding_needed(log.data, str(now["best_arm"].iloc[0]))
    tables = {
        "arms": arms,
        "patients": pd.DataFrame(patients.items(), columns=["what", "patients"]),
        "censoring": log.censored[log.censored["censored"] > 0].reset_index(drop=True),
        "balance": balance,
        "propensities": propensities_of(log.data),
        "policies": _policies(study, everyone, doubted=doubted),
        "heterogeneity": test,
        "power": power,
        "e-value": needed if study.log.propensity == ESTIMATE else needed.iloc[:0],
        "scores": _scores(study, problem),
        "examples": _examples(study, problem, options),
    }
    return TrialDetails(
        patients=log.data.n_patients,
        untreated=log.n_untreated,
        missing=sum(log.missing),
        censored=int(log.censored["censored"].sum()),
        unread=study.log.unread,
        counted_of=100 if log.data.is_binary else 1,
        outcome=outcome,
        further=others[0] if others else "",
        doubted=doubted,
        best_arm=best,
        rivals=tuple(against.loc[against["verdict"] != BETTER, "than"]),
        worse=tuple(against.loc[against["verdict"] == BETTER, "than"]),
        least_gain=float(power["gain"].iloc[0]) if len(power) else math.nan,
        signs=bool(effects["signs"]) and not doubted,
        p=float(effects["p"]),
        p_low=float(effects["p_low"]),
        p_high=float(effects["p_high"]),
        imbalanced=float((balance["after"] > IMBALANCE).sum()),
        expected_by_chance=len(balance) * imbalance_by_chance(log.data),
        tables=tables,
        unplaced=unplaced,
    )


def _policies(study: LoggedStudy, everyone: pd.DataFrame, *, doubted: bool) -> pd.DataFrame:
    """The study's policies at its epsilon, and from which epsilon on the interval of the difference is above 0.

    `surely_from` is inf where there is none, NaN for policies that do not depend on epsilon, and for all of a log whose
    errors no interval covers.
    """
    now = everyone.xs(study.epsilon, level="epsilon").loc[list(study.policies)]
    better = everyone[everyone["difference_low"] > 0].reset_index().groupby("policy")["epsilon"].min()
    sure = [CATALOGUE[name].uses_epsilon and not doubted for name in study.policies]
    first: FloatArray = np.array([float(better.get(name, math.inf)) for name in study.policies])
    table = now[[*OF_POLICIES, "break_even_gain"]].assign(surely_from=np.where(sure, first, math.nan))
    return table.reset_index(names="policy")


def _scores(study: LoggedStudy, problem: DecisionProblem) -> pd.DataFrame:
    """How many records there are, how far their fitted scores can be apart, and the least loss by these scores."""
    bound = prove_loss(problem, study.epsilon).least_loss if Optimal.name in study.policies else math.nan
    numbers = {
        "records": float(problem.n_records),
        "sensitivity": problem.sensitivity.value,
        "range": problem.sensitivity.range,
        "least loss": bound,
    }
    return pd.DataFrame(numbers.items(), columns=["what", "value"]).dropna(ignore_index=True)


def _examples(study: LoggedStudy, problem: DecisionProblem, options: pd.DataFrame) -> pd.DataFrame:
    """What the best private draw gives example patients at each epsilon, exactly."""
    examples = example_patients(problem, study.illness)
    private = options[(options["section"] == OPTION) & (options["option"] == PRIVATE)]
    given = [
        example_probabilities(problem, examples, [study.policy(str(policy))], rows["epsilon"].tolist())
        for policy, rows in private.groupby("policy")
    ]
    titles = {each.label: problem.records.describe(each.record) for each in examples}
    table = pd.concat(given).sort_values("epsilon", kind="stable", ignore_index=True)
    return table.assign(record=table["patient"].map(titles))
