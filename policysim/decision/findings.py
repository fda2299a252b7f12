"""What a comparison found at one epsilon: the numbers behind the printed screen, the report and --json."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from policies.adjacency import Sensitive
from policies.reference import Greedy
from policysim.decision.beliefs import Beliefs
from policysim.decision.prices import unused_features, uses_hidden
from policysim.decision.redraws import Robustness, robustness
from policysim.decision.results import Results
from policysim.decision.scenario_outcomes import without_effect
from policysim.question.formats import population
from policysim.question.words import ACHIEVABLE, ALL, UNBEATABLE, guesses
from policysim.study.basis import in_words
from policysim.study.declared import ScenarioStudy
from policysim.study.gain import Gain, deaths_of_references, safest_for_all
from policysim.study.stated_bounds import broken_bounds
from policysim.study.study_problem import FACTORS
from policysim.study.sweep import applies, evaluated_on


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
    epsilon_spent: float
    better_from: float
    keeps_from: float
    guess_rate: float = math.nan


WORST = ("policy", "group", "level", "share", "loss", "overall_loss", "extra_deaths")


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
        Benefit kept when the true prevalence is so many times the assumed one; see `policysim.decision.redraws`.
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


def find(found: Results, study: ScenarioStudy | None = None) -> Findings:
    """Sum up what was computed.

    Parameters
    ----------
    found : Results
        Of a problem.
    study : ScenarioStudy, optional
        From which the problem was made.
    """
    problem, asked, tables = found.problem, found.asked, found.tables
    gain, at_epsilon = Gain.of(problem), found.at_epsilon
    overall = at_epsilon[at_epsilon["group"] == ALL]
    named = {*(policy.name for policy in asked.policies), ACHIEVABLE, UNBEATABLE}
    searched = tables["search"].set_index("policy").to_dict("index")
    rows = [
        PolicyRow(
            policy=row["policy"],
            benefit_kept=row["benefit_kept"] if gain.has_shares else math.nan,
            extra_deaths=row.get("extra_deaths", math.nan),
            epsilon_spent=row["epsilon_spent"],
            better_from=searched.get(row["policy"], {}).get("better_from", math.nan),
            keeps_from=searched.get(row["policy"], {}).get("keeps_from", math.nan),
            guess_rate=row["guess_rate"],
        )
        for row in overall.to_dict("records")
        if row["policy"] in named
    ]
    deaths = deaths_of_references(problem)
    safest = [
        ForAll(row["action"], row["extra_deaths"], row["benefit_kept"])
        for row in safest_for_all(tables["for-all"]).to_dict("records")
        if deaths
    ]
    worst = [
        WorstGroup(*(row[name] for name in WORST))
        for row in in_words(tables["worst-group"], problem.records).to_dict("records")
    ]
    even = [BreakEven(*row) for row in tables["break-even"].itertuples(index=False)]
    prevalence = {
        str(name): dict(zip(FACTORS, of["benefit_kept"].tolist(), strict=True))
        for name, of in (tables["prevalence"].groupby("policy", sort=False) if "prevalence" in tables else ())
        if of["benefit_kept"].notna().any()
    }
    ranked = ["best-fixed", *(policy.name for policy in asked.private if applies(policy, problem))]
    each = evaluated_on(Greedy(), problem)
    stakes = each.utilities.max(axis=1) - each.utilities.min(axis=1)
    # The median of the patients: the smallest stake at which those up to it are half.
    order = np.argsort(stakes)
    below = np.cumsum(each.prior[order])
    some = problem.adjacency.name == Sensitive.name
    return Findings(
        epsilon=asked.epsilon,
        deaths=deaths,
        one_for_all=problem.best_fixed_name,
        rows=rows,
        right_guesses=guesses(asked.epsilon),
        worst=worst[0] if worst else None,
        typical_stake=float(stakes[order][np.searchsorted(below, below[-1] / 2)]),
        prevalence=prevalence,
        robustness=None if found.redraws is None else robustness(found.redraws, ranked),
        gain=gain,
        unused=unused_features(problem, found.labels.hidden_features) if some else (),
        used=uses_hidden(problem),
        safest=safest[0] if safest else NOBODY_DIES,
        break_even=even[0] if even else None,
        beliefs=Beliefs.of(tables["beliefs"], problem) if "beliefs" in tables else None,
        without_effect=() if study is None else without_effect(study, problem),
        broken=broken_bounds(problem, asked.at_most, asked.capacity, overall),
        **({"kept_safe": "within the study's bounds"} if asked.at_most or asked.capacity else {}),
    )
