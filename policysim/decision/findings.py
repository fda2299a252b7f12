"""What a comparison found at one epsilon: the numbers behind the printed screen, the report and --json."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from envs.scenario import DEATH
from policies.arrays import ROUNDING
from policies.catalogue import CATALOGUE
from policies.optimal.bounds import InfeasibleError
from policies.optimal.optimum import Optimal, OptimalRobust, OptimalSafe
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedResponse
from policies.reference import BestFixed, Greedy
from policysim.decision.beliefs import Beliefs, hidden_beliefs
from policysim.decision.broken_bounds import broken_bounds
from policysim.decision.demands import make_demand
from policysim.decision.prices import unused_features, uses_hidden
from policysim.decision.robustness import Robustness, robustness, wrong_prior
from policysim.decision.without_effect import without_effect
from policysim.question.formats import NEGLIGIBLE, population
from policysim.question.protocol import SILENT, Progress
from policysim.question.words import ACHIEVABLE, ALL, KEEP, UNBEATABLE, guesses
from policysim.study.basis import in_words
from policysim.study.declared import ScenarioStudy
from policysim.study.gain import Gain
from policysim.study.other_priors import FACTORS
from policysim.study.search import LOWEST, STEP, Curve, UnreachableError, fewest_digits
from policysim.study.slider import first_policy
from policysim.study.sweep import N_THREADS, applies, at, evaluated_on

# The searched epsilons of a policy that does not depend on epsilon.
NEITHER = (math.nan, math.nan)
# What linear programming finds, which is no mechanism that others know.
OPTIMA = {Optimal.name, OptimalSafe.name, OptimalRobust.name}
# The policy that trusts the prior, and one that does not.
ON_PREVALENCE = (Optimal.name, RandomizedResponse.name)


@dataclass(frozen=True)
class PolicyRow:
    """One policy at the study's epsilon; rates are per patient.

    `better_from` is the least epsilon from which it is worth more than the best single treatment for all, beyond
    rounding (`Gain.beaten_from`), and `keeps_from` the least at which it keeps `KEEP` of the benefit, both rounded up
    as `fewest_digits` does; 0 where every epsilon above 0 will do, NaN for policies that do not depend on epsilon, inf
    where no epsilon reaches it.
    `benefit_kept` and `keeps_from` are NaN where shares of the benefit say little (`Gain.has_shares`), `guess_rate` for
    bounds of the limit.
    """

    policy: str
    benefit_kept: float
    extra_deaths: float
    worse_than_untreated: float
    epsilon_spent: float
    better_from: float
    keeps_from: float
    guess_rate: float = math.nan
    better_than_untreated: float = math.nan


@dataclass(frozen=True)
class WorstGroup:
    """The group that loses most per patient under one policy."""

    policy: str
    group: str
    level: str
    share: float
    loss: float
    overall_loss: float
    extra_deaths: float


class ForAll(NamedTuple):
    """The treatment that costs the fewest deaths if everybody gets it; no name, and NaN, where deaths are not counted.

    Attributes
    ----------
    action : str
        Its name.
    extra_deaths : float
        Per patient, beyond those of the best treatment for each.
    benefit_kept : float
        0 if it is the best single treatment in utility, too, and less if not; NaN where shares say little.
    """

    action: str = ""
    extra_deaths: float = math.nan
    benefit_kept: float = math.nan


NOBODY_DIES = ForAll()


class BreakEven(NamedTuple):
    """Up to which weight of a death a policy that costs more deaths than one treatment for all is worth more than it.

    Attributes
    ----------
    policy : str
        The private policy of the highest value.
    weight : float
        Of a death, in units of utility, at which the two are worth the same.
    assumed : float
        The weight that the study gives to a death.
    """

    policy: str
    weight: float
    assumed: float


@dataclass(frozen=True)
class Findings:
    """What a study found at its epsilon.

    Attributes
    ----------
    epsilon : float
        The one that it is about.
    deaths : mapping of str to float
        Expected deaths per patient: best for each, one for all, untreated (where everybody may be); empty where no
        record can die.
    one_for_all : str
        The best single action, or where records differ in what they allow, those that are best for them.
    rows : list of PolicyRow
        The policies of the study.
    right_guesses : float
        e^eps / (1 + e^eps): how often the better guess between two equally likely neighbours can be right at most.
    worst : WorstGroup or None
        Under the best of the private policies at this epsilon, the optima apart; None if the study names no groups, or
        if none loses anything.
    typical_stake : float
        Median over patients of the difference in utility between their best and worst action.
    prevalence : mapping of policy to mapping of factor to float
        Benefit kept when the true prevalence is so many times the assumed one; see `policysim.decision.robustness`.
        Without policies of which no share says anything.
    robustness : Robustness or None
        How often the ranking holds, and what benefit and harms are, when uncertain numbers of the model are redrawn.
    gain : Gain
        What the best treatment for each gains over one for all, of which `benefit_kept` is a share.
    unused : tuple of str
        Hidden features that tell no treatments apart in this model: see `unused_features`.
    used : bool
        Whether the model uses anything of what is hidden.
    safest : ForAll
        The single treatment for all that costs the fewest deaths.
    break_even : BreakEven or None
        None where no private policy is worth more than one treatment for all, or none that is costs more deaths.
    beliefs : Beliefs or None
        What an observer learns of the patient under the best of the private policies at this epsilon; None without one.
    broken : mapping of str to tuple of str
        The bounds that the study states and a policy breaks, in words, by policy.
    kept_safe : str
        What `optimal-safe` keeps to.
    without_effect : tuple of str
        What the scenario states without effect, in sentences.
    """

    epsilon: float
    deaths: dict[str, float]
    one_for_all: str
    rows: list[PolicyRow]
    right_guesses: float
    worst: WorstGroup | None
    typical_stake: float
    prevalence: dict[str, dict[str, float]]
    robustness: Robustness | None
    gain: Gain
    unused: tuple[str, ...]
    used: bool
    safest: ForAll = NOBODY_DIES
    break_even: BreakEven | None = None
    beliefs: Beliefs | None = None
    broken: dict[str, tuple[str, ...]] = field(default_factory=dict)
    kept_safe: str = "with no more deaths than one treatment for all"
    without_effect: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Among how many patients deaths are counted, in all that is said of the study."""
        return population(row.extra_deaths for row in self.rows)


def find(study: ScenarioStudy, problem: DecisionProblem, table: pd.DataFrame, progress: Progress = SILENT) -> Findings:
    """Sum up a comparison.

    Parameters
    ----------
    study : ScenarioStudy
        What was asked.
    problem : DecisionProblem
        Built from it.
    table : DataFrame
        From `compare`, with the study's policies, epsilons and groups.
    progress : Progress, optional
        Told of the search for the epsilons of each policy, and of each redraw.
    """
    overall = table[table["group"] == ALL]
    at_epsilon = in_words(table[table["epsilon"] == study.epsilon], study.space)
    templates = [study.policy(name) for name in _private(study)]
    templates = [template for template in templates if applies(template, problem)]
    applied = [template.name for template in templates]
    on_prevalence = [name for name in ON_PREVALENCE if name in applied]
    gain = Gain.of(problem)
    ranked = (BestFixed.name, *applied)
    with ThreadPoolExecutor(N_THREADS) as pool:
        # The redraws are many small steps: they run while the searches, a few large ones, leave the interpreter alone.
        redraws = pool.submit(robustness, study, problem, ranked, progress)
        searches = _search_all(templates, problem, gain, overall, progress)
        prevalence = _prevalence(study, problem, on_prevalence)
    rows = [
        PolicyRow(
            policy=str(row["policy"]),
            benefit_kept=float(row["benefit_kept"]) if gain.has_shares else math.nan,
            extra_deaths=float(row["extra_deaths"]),
            worse_than_untreated=float(row["worse_than_untreated"]),
            epsilon_spent=float(row["epsilon_spent"]),
            better_from=searches.get(str(row["policy"]), NEITHER)[0],
            keeps_from=searches.get(str(row["policy"]), NEITHER)[1],
            guess_rate=float(row["guess_rate"]),
            better_than_untreated=float(row["better_than_untreated"]),
        )
        for _, row in overall[overall["epsilon"] == study.epsilon].iterrows()
        if row["policy"] in {*study.policies, ACHIEVABLE, UNBEATABLE}
    ]
    each = evaluated_on(Greedy(), problem)
    return Findings(
        epsilon=study.epsilon,
        deaths=_deaths(problem),
        one_for_all=problem.best_fixed_name,
        rows=rows,
        right_guesses=guesses(study.epsilon),
        worst=worst_group(at_epsilon, set(_private(study)) - OPTIMA),
        typical_stake=weighted_median(each.utilities.max(axis=1) - each.utilities.min(axis=1), each.prior),
        prevalence=prevalence,
        robustness=redraws.result(),
        gain=gain,
        unused=unused_features(study, problem, study.sensitive),
        used=uses_hidden(problem),
        safest=_safest(problem, gain),
        break_even=_break_even(overall[overall["epsilon"] == study.epsilon], _private(study), gain, study),
        beliefs=_beliefs(study, problem, table),
        without_effect=without_effect(study, problem),
        broken=broken_bounds(study, problem, overall[overall["epsilon"] == study.epsilon]),
        **({"kept_safe": "within the study's bounds"} if study.at_most or study.capacity else {}),
    )


def _prevalence(study: ScenarioStudy, problem: DecisionProblem, names: list[str]) -> dict[str, dict[str, float]]:
    table = wrong_prior(study, problem, names)
    return {
        name: dict(zip(FACTORS, rows["benefit_kept"].tolist(), strict=True))
        for name in names
        if (rows := table[table["policy"] == name])["benefit_kept"].notna().any()
    }


def weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """The smallest value at which the weights of all values up to it reach half."""
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cumulative, cumulative[-1] / 2)])


def _private(study: ScenarioStudy) -> list[str]:
    return [name for name in study.policies if CATALOGUE[name].uses_epsilon]


def _search_all(
    templates: list[Policy], problem: DecisionProblem, gain: Gain, overall: pd.DataFrame, progress: Progress
) -> dict[str, tuple[float, float]]:
    """The least epsilon from which each private policy is worth more than one for all, and at which it keeps `KEEP`."""
    progress.expect(len(templates))
    worst = float(problem.prior @ problem.utilities.min(axis=1))
    enough = make_demand(problem, keep=KEEP).value

    def search(template: Policy) -> tuple[float, float]:
        rows = overall[overall["policy"] == template.name]
        known = dict(zip(rows["epsilon"], rows["value"], strict=True))
        on = evaluated_on(template, problem)

        def value(epsilon: float) -> float:
            try:
                return on.value(at(template, epsilon).probabilities(on))
            except InfeasibleError:
                return worst  # a policy that there is not is worth no more

        curve = Curve(template.name, value, known)
        found = _reach(curve, gain.beaten_from), _reach(curve, enough) if gain.has_shares else math.nan
        progress.advance()
        return found

    # The longest first: those that are computed on all records.
    longest = sorted(templates, key=lambda template: -evaluated_on(template, problem).n_records)
    with ThreadPoolExecutor(N_THREADS) as pool:
        found = pool.map(search, longest)
        return dict(zip((template.name for template in longest), found, strict=True))


def _reach(curve: Curve, needed: float) -> float:
    if needed == math.inf:
        return math.inf
    try:
        found = curve.first_reaching(needed)
    except UnreachableError:
        return math.inf
    # The search ends here where every epsilon above 0 will do.
    return fewest_digits(found, lambda decimal: curve(decimal) >= needed) if found > STEP * LOWEST else 0.0


def _deaths(problem: DecisionProblem) -> dict[str, float]:
    deaths = problem.outcomes["deaths"]
    if not deaths.any():
        return {}
    best = np.take_along_axis(deaths, problem.best_actions[:, None], axis=1)[:, 0]
    choices = {"best for each": best, "one for all": problem.of_best_fixed(deaths)}
    if problem.admissible is None or problem.admissible[:, 0].all():
        choices["untreated"] = deaths[:, 0]
    return {name: float(problem.prior @ chosen) for name, chosen in choices.items()}


def _beliefs(study: ScenarioStudy, problem: DecisionProblem, table: pd.DataFrame) -> Beliefs | None:
    private = table[table["policy"].isin(_private(study))]
    return None if private.empty else hidden_beliefs(study, problem, first_policy(private, study.epsilon))


def _safest(problem: DecisionProblem, gain: Gain) -> ForAll:
    if not problem.outcomes["deaths"].any():
        return NOBODY_DIES
    deaths = problem.for_all(problem.outcomes["deaths"])
    action, found = int(deaths.argmin()), _deaths(problem)
    # Of those that cost no more deaths but for rounding, the best in utility.
    if found["one for all"] <= deaths[action] * (1 + ROUNDING):
        name, least, value = problem.best_fixed_name, found["one for all"], problem.best_fixed_value
    else:
        name, least, value = problem.name_for_all(action), float(deaths[action]), float(problem.fixed_values[action])
    kept = gain.kept(value) if gain.has_shares else math.nan
    return ForAll(name, least - found["best for each"], kept)


def _break_even(at_epsilon: pd.DataFrame, private: Sequence[str], gain: Gain, study: ScenarioStudy) -> BreakEven | None:
    """Where the value of the best private policy, and of one treatment for all, are the same as a death weighs more."""
    rows = at_epsilon[at_epsilon["policy"].isin(private) & (at_epsilon["value"] >= gain.beaten_from)]
    fixed = at_epsilon[at_epsilon["policy"] == BestFixed.name]
    if rows.empty or fixed.empty or fixed["extra_deaths"].isna().all():
        return None
    best = rows.iloc[int(rows["value"].argmax())]
    deaths = float(best["extra_deaths"] - fixed["extra_deaths"].iloc[0])
    if deaths <= NEGLIGIBLE:
        return None
    assumed = float(study.utility.weights.get(DEATH, 0.0))
    return BreakEven(str(best["policy"]), assumed + float(best["value"] - fixed["value"].iloc[0]) / deaths, assumed)


def worst_group(at_epsilon: pd.DataFrame, among: set[str]) -> WorstGroup | None:
    """The group that loses most under the best of some policies; None without groups, policies, or losses.

    Parameters
    ----------
    at_epsilon : DataFrame
        Rows of a comparison at one epsilon.
    among : set of str
        Names of policies.
    """
    candidates = at_epsilon[at_epsilon["policy"].isin(among)]
    groups = candidates[(candidates["group"] != ALL) & (candidates["share"] > 0)]
    if groups.empty:
        return None
    overall = candidates[candidates["group"] == ALL]
    best = overall.iloc[int(overall["value"].argmax())]
    mine = groups[groups["policy"] == best["policy"]]
    worst = mine.iloc[int(mine["loss"].argmax())]
    if worst["loss"] <= NEGLIGIBLE:
        return None
    return WorstGroup(
        policy=str(best["policy"]),
        group=str(worst["group"]),
        level=str(worst["level"]),
        share=float(worst["share"]),
        loss=float(worst["loss"]),
        overall_loss=float(best["loss"]),
        extra_deaths=float(worst["extra_deaths"]),
    )
