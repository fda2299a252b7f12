"""What a comparison on a log shows: options with letters, differences with verdicts, who is harmed, what leaks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from policies.catalogue import CATALOGUE
from policies.exponential import Exponential, ExponentialFitted
from policies.optimal.bounds import bounds_on
from policies.optimal.optimum import Optimal, OptimalSafe, SameWithinLimits
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Greedy
from policysim.logs.load_log import Log
from policysim.logs.log_source import ESTIMATE
from policysim.report.findings import NOT_SHOWN, OUTCOME, UTILITY, Findings, hides_of, verdict_of_interval
from policysim.study.checks import LEVEL, UPPER
from policysim.study.declared import LoggedStudy
from policysim.study.example_patients import example_patients, example_probabilities
from policysim.study.gain import private_choices, prove_loss
from policysim.study.labels import level_in_words
from policysim.study.stated_bounds import broken_bounds
from policysim.trials.arms import arms_of, utility_of_arms
from policysim.trials.contrasts import against_highest
from policysim.trials.diagnostics import (
    IMBALANCE,
    LogCaveats,
    balance_of,
    imbalance_by_chance,
    log_caveats,
    propensities_of,
)
from policysim.trials.estimators import range_caveats
from policysim.trials.evidence import confounding_needed, heterogeneity, power_of
from policysim.trials.splits import PARTS, WITHIN, calibration_of
from policysim.trials.trial_columns import ENDS
from policysim.utility import COSTS
from policysim.words import ALL, guesses

# The letters of the options, and those of policies that were asked for by name.
SAME, PRIVATE, EACH, NAMED = "A", "B", "C", ("D", "E", "F")
# What a row is about: an option with a letter, a mechanism that stands in the trace alone, or (of differences) an arm.
OPTION, TRACE, ARM = "option", "trace", "arm"
TITLES = {SAME: "One arm for everyone", PRIVATE: "Best private draw", EACH: "Best for each patient"}
IN_LIMITS = {
    OptimalSafe.name: "Best private draw within limits",
    SameWithinLimits.name: "Same chances within limits",
}
IN_TRACE = {
    ExponentialFitted.name: "exponential mechanism, fitted",
    Exponential.name: "exponential mechanism of the textbook",
}
# What is expected of an option beside its value, where treatments cost something.
EXPECTED = tuple(f"expected_{name}" for name in PARTS)
# Of a comparison, what stands beside each policy.
OF_POLICIES = ["value", "difference", "difference_low", "difference_high", "benefit_kept", "epsilon_spent"]


@dataclass(frozen=True, eq=False, kw_only=True)
class TrialDetails:
    """What is found of a trial beside the core of its findings.

    Attributes
    ----------
    patients : int
        How many are used.
    counted_of : int
        What the mean outcome is counted among: 100 where each patient has it or not, else 1.
    doubted : bool
        Whether the log has signs of errors that no interval covers: then nothing is concluded.
    imbalanced, expected_by_chance : float
        How many features differ between arms after weighting, and how many would by chance alone.
    tables : mapping of str to DataFrame
        By the names of their files: limits (`limits_of`), arms, patients (and how many clusters, if there are any),
        unknown, censoring, balance, calibration, propensities, policies, heterogeneity, power, e-value, scores and
        examples; what does not apply has no rows.
    unplaced : tuple of str
        Policies that were asked for by name, and for which there is no letter.
    """

    patients: int
    counted_of: int
    doubted: bool
    imbalanced: int
    expected_by_chance: float
    tables: Mapping[str, pd.DataFrame]
    unplaced: tuple[str, ...]


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
    everyone = compared[compared["group"] == ALL].set_index(["policy", "epsilon"])
    options, unplaced = _options(study, everyone, named)
    tables = _tables(study, log, problem, everyone, options)
    of_outcome = utility_of_arms(log, tables["arms"])
    differences = _differences(options, everyone, of_outcome, log)
    harmed = _harmed(log, compared, options)
    if doubts.errors:
        differences["verdict"] = NOT_SHOWN
        harmed = harmed.iloc[:0]
        tables["policies"]["surely_from"] = math.nan
        tables["heterogeneity"]["signs"] = 0.0
    warnings = [*doubts.errors, *doubts.others, *_doubtful_values(study, options, of_outcome)]
    warnings += [f"left out: {reason}" for reason in left_out]
    balance = tables["balance"]
    return Findings(
        options=options,
        differences=differences,
        harmed=harmed,
        leaks=_leaks(options),
        warnings=(*warnings, *_broken(study, problem, options, everyone)),
        details=TrialDetails(
            patients=log.data.n_patients,
            counted_of=100 if log.data.is_binary and log.data.costs is None else 1,
            doubted=bool(doubts.errors),
            imbalanced=int((balance["after"] > IMBALANCE).sum()),
            expected_by_chance=len(balance) * imbalance_by_chance(log.data),
            tables=tables,
            unplaced=unplaced,
        ),
    )


def _options(study: LoggedStudy, everyone: pd.DataFrame, named: Sequence[str]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The options, and then the mechanisms of the trace, a row for each epsilon; and for whom there is no letter."""
    # B is at each epsilon the private policy that is best by the fitted scores, which have no part in its estimates.
    draws = private_choices(everyone.reset_index(), study.policies, by="fitted_value")
    within = [name for name in IN_LIMITS if name in everyone.index.unique("policy")]
    lettered = (BestFixed.name, Greedy.name, draws[study.epsilon])
    others = [name for name in dict.fromkeys([*within, *named]) if name not in lettered]
    policies = {SAME: dict.fromkeys(draws, BestFixed.name), PRIVATE: draws, EACH: dict.fromkeys(draws, Greedy.name)}
    policies |= {letter: dict.fromkeys(draws, name) for letter, name in zip(NAMED, others, strict=False)}
    rows = [
        (OPTION, letter, TITLES.get(letter, policy), policy, epsilon)
        for letter, by_epsilon in policies.items()
        for epsilon, policy in sorted(by_epsilon.items())
    ]
    shown = [set(by_epsilon.values()) for by_epsilon in policies.values()]
    for policy, title in IN_TRACE.items():
        if policy in everyone.index.unique("policy") and {policy} not in shown:
            rows += [(TRACE, title, title, policy, epsilon) for epsilon in sorted(draws)]
    options = pd.DataFrame(rows, columns=["section", "option", "title", "policy", "epsilon"])
    options["title"] = options["title"].replace(IN_LIMITS)
    numbers = everyone.loc[list(zip(options["policy"], options["epsilon"], strict=True))].reset_index()
    spent = numbers["epsilon_spent"]
    options = options.assign(
        hides=spent.map(hides_of),
        value=numbers["value"],
        low=numbers["value_low"],
        high=numbers["value_high"],
        # Where an exact rate would take too long, the loss bounds it.
        told_apart=numbers["guess_rate"].fillna(spent.map(guesses)),
        epsilon_spent=spent,
        benefit_kept=numbers["benefit_kept"],
        shown_gain=numbers["shown_gain"],
        **{name: numbers[name] for name in EXPECTED if name in numbers},
    )
    return options, tuple(others[len(NAMED) :])


def _doubtful_values(study: LoggedStudy, options: pd.DataFrame, arms: pd.DataFrame) -> list[str]:
    """Values of options that are impossible, and options and arms that may be worth nearly anything."""
    if study.log.guessed_range:
        return []
    now = options[(options["section"] == OPTION) & (options["epsilon"] == study.epsilon)]
    what = UTILITY if study.log.costs else OUTCOME
    rows = [
        *now[["option", "value", "low", "high"]].values,
        *arms.assign(arm="“" + arms["arm"] + "”")[["arm", "mean", "low", "high"]].values,
    ]
    return [
        text
        for name, value, *ends in rows
        for text in range_caveats(f"The mean {what} of {name}", value, ends, study.utility_range)
    ]


def _broken(
    study: LoggedStudy, problem: DecisionProblem, options: pd.DataFrame, everyone: pd.DataFrame
) -> Iterator[str]:
    """Which options break the limits of the study; the one that was made within them may only do so by chance."""
    now = everyone.xs(study.epsilon, level="epsilon").reset_index()
    lettered = options[(options["section"] == OPTION) & (options["epsilon"] == study.epsilon)]
    letters = lettered[~lettered["policy"].isin(IN_LIMITS)].set_index("policy")["option"]
    titles = {COSTS: "units of cost"}
    broken = broken_bounds(problem, study.at_most, study.capacity, now[now["policy"].isin(letters.index)], titles)
    said = {str(letters[policy]): ", ".join(words) for policy, words in broken.items()}
    return (f"{letter}: {words}." for letter, words in sorted(said.items()))


def limits_of(
    study: LoggedStudy, problem: DecisionProblem, options: pd.DataFrame, everyone: pd.DataFrame
) -> pd.DataFrame:
    """What each option uses, of patients that had no part in making it, beside the limits of the study.

    Parameters
    ----------
    study : LoggedStudy
    problem : DecisionProblem
        Fitted to the whole log, with the outcomes that are bounded.
    options : DataFrame
        Those with letters and others: section, option, policy and epsilon.
    everyone : DataFrame
        The comparison by policy and epsilon.

    Returns
    -------
    DataFrame
        epsilon, option, what (a treatment, or an outcome), limit (a share of patients, or a mean per patient), value,
        and its 95 % interval low, high: how far the patients of another log may be from these.
    """
    rows = []
    lettered = options[options["section"] == OPTION]
    for bound in bounds_on(problem, study.at_most, study.capacity):
        column = f"expected_{bound.name}" if bound.action is None else f"p_{bound.name}"
        columns = [column, f"{column}_low", f"{column}_high"]
        for option, policy, epsilon in lettered[["option", "policy", "epsilon"]].values:
            rows.append((epsilon, option, bound.name, bound.limit, *everyone.loc[(policy, epsilon), columns]))
    return pd.DataFrame(rows, columns=["epsilon", "option", "what", "limit", "value", "low", "high"])


def _differences(options: pd.DataFrame, everyone: pd.DataFrame, arms: pd.DataFrame, log: Log) -> pd.DataFrame:
    """Each option against A, B against C, what keeps the limits against the same, and the best arm against each other.

    Where treatments cost something, the difference in utility has two parts, which follow it: outcome minus costs.
    """
    outcome, same = str(arms["outcome"].iloc[0]), same_within(options)
    rows: list[tuple[str, float, str, str, str, float, float, float]] = []
    others = options[options["option"] != SAME]
    for section, option, policy, epsilon in others[["section", "option", "policy", "epsilon"]].itertuples(index=False):
        row = everyone.loc[(policy, epsilon)]
        for name, end in ((outcome, ""), *((part, f"_{part}") for part in PARTS if f"loss_{part}" in row)):
            against_a = (row[f"difference{end}{side}"] for side in ("", "_low", "_high"))
            rows.append((section, epsilon, option, SAME, name, *against_a))
            if option == PRIVATE:
                against_c = (0 - row[f"loss{end}{side}"] for side in ("", "_high", "_low"))
                rows.append((section, epsilon, option, EACH, name, *against_c))
            if policy == OptimalSafe.name and same != SAME:
                against_same = (row[f"{WITHIN}{end}{side}"] for side in ("", "_low", "_high"))
                rows.append((section, epsilon, option, same, name, *against_same))
    for best, arm, *apart in against_highest(arms, log.data, log.predicted).itertuples(index=False, name=None):
        rows.append((ARM, math.nan, best, arm, outcome, *apart))
    table = pd.DataFrame(rows, columns=["section", "epsilon", "option", "than", "outcome", "value", "low", "high"])
    # Fewer costs are better.
    signs = np.where(table["outcome"] == COSTS, -1, 1)
    ends = np.sort(table[["low", "high"]].to_numpy() * signs[:, None], axis=1)
    return table.assign(verdict=[verdict_of_interval(*each) for each in ends])


def same_within(options: pd.DataFrame) -> str:
    """The letter of what the draw within limits is compared with: A, unless that breaks them."""
    return next(iter(options.loc[options["policy"] == SameWithinLimits.name, "option"]), SAME)


def _harmed(log: Log, compared: pd.DataFrame, options: pd.DataFrame) -> pd.DataFrame:
    """The groups that an option surely harms, instead of A or `same_within`, at each epsilon: how much less they have.

    All groups of an option together are wrong in at most 5 % (Bonferroni): their intervals are stretched, by quantiles
    of the normal distribution, or of Student's with one degree of freedom less than there are clusters.
    """
    lettered = options[(options["section"] == OPTION) & (options["option"] != SAME)]
    groups = compared[compared["group"] != ALL].dropna(subset=["difference_low", "difference_high"])
    table = lettered[["epsilon", "option", "policy"]].merge(groups, on=["policy", "epsilon"]).assign(than=SAME)
    if WITHIN in table:
        inside = table[WITHIN].notna()
        for end in ENDS:
            table.loc[inside, f"difference{end}"] = table[f"{WITHIN}{end}"]
        table.loc[inside, "than"] = same_within(options)
    tested = table.groupby(["epsilon", "option"])["group"].transform("size")
    freedom = np.inf if log.data.clusters is None else log.data.n_units - 1
    stretch = tested.map(lambda number: stdtrit(freedom, 1 - (1 - LEVEL) / 2 / number) / stdtrit(freedom, UPPER))
    low, high = (
        table["difference"] + stretch * (table[end] - table["difference"])
        for end in ("difference_low", "difference_high")
    )
    table = table.assign(value=-table["difference"], low=-high, high=-low)[high < 0]
    table["group"] = [level_in_words(log.space, *pair) for pair in zip(table["group"], table["level"], strict=True)]
    table = table.sort_values(["option", "epsilon", "value"], ascending=[True, True, False], kind="stable")
    return table[["epsilon", "option", "than", "group", "share", "value", "low", "high"]].reset_index(drop=True)


def _leaks(options: pd.DataFrame) -> pd.DataFrame:
    """Who tells two patients apart that must look alike, by the treatment that one of them gets; a coin toss: half."""
    lettered = options[options["section"] == OPTION]
    table = lettered[["epsilon", "option"]].assign(belief="which of two patients", among="", before=0.5, low=0.5)
    return table.assign(high=lettered["told_apart"]).reset_index(drop=True)


def _tables(
    study: LoggedStudy, log: Log, problem: DecisionProblem, everyone: pd.DataFrame, options: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """The tables beside the core."""
    now = everyone.xs(study.epsilon, level="epsilon")
    low, high = study.utility_range
    patients = {
        "read": log.n_read,
        "without a treatment or feature": log.n_untreated,
        "without an outcome": sum(log.missing),
        "used": log.data.n_patients,
        **({} if log.data.clusters is None else {"clusters": log.data.n_units}),
    }
    estimated = study.log.propensity == ESTIMATE
    confounding = confounding_needed(log.data, str(now["best_arm"].iloc[0]), log.predicted)
    lettered = options[options["section"] == OPTION]
    return {
        "limits": limits_of(study, problem, options, everyone),
        "arms": arms_of(log, study.log),
        "patients": pd.DataFrame(patients.items(), columns=["what", "patients"]),
        "unknown": pd.DataFrame(log.unknown.items(), columns=["column", "patients"]),
        "censoring": log.censored[log.censored["censored"] > 0].reset_index(drop=True),
        "balance": balance_of(log, products=estimated),
        "calibration": calibration_of(log, study),
        "propensities": propensities_of(log.data),
        "policies": _policies(study, everyone),
        "heterogeneity": heterogeneity(log, study),
        "power": power_of(lettered, log.data.n_patients, None if study.log.guessed_range else high - low),
        "e-value": confounding if estimated else confounding.iloc[:0],
        "scores": _scores(study, problem),
        "examples": _examples(study, problem, options),
    }


def _policies(study: LoggedStudy, everyone: pd.DataFrame) -> pd.DataFrame:
    """The study's policies at its epsilon, and from which epsilon on the interval of the difference is above 0.

    `surely_from` is inf where there is none, and NaN for policies that do not depend on epsilon.
    """
    now = everyone.xs(study.epsilon, level="epsilon").loc[list(study.policies)]
    better = everyone[everyone["difference_low"] > 0].reset_index().groupby("policy")["epsilon"].min()
    first = better.reindex(now.index, fill_value=math.inf)
    private = np.array([CATALOGUE[name].uses_epsilon for name in study.policies])
    return now[OF_POLICIES].assign(surely_from=first.where(private)).reset_index(names="policy")


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
    chances = [
        example_probabilities(problem, examples, [study.policy(str(policy))], rows["epsilon"].tolist())
        for policy, rows in options[options["option"] == PRIVATE].groupby("policy")
    ]
    titles = {patient.label: problem.records.describe(patient.record) for patient in examples}
    table = pd.concat(chances).sort_values("epsilon", kind="stable", ignore_index=True)
    return table.assign(record=table["patient"].map(titles))
