"""What the evidence on one decision says: options with letters, their differences, who is harmed, and what leaks.

A gives the same to everyone, B is the best private draw, C is the best for each patient. Hiding everything costs A
instead of C; leaking up to ε buys B instead of A; privacy costs B instead of C in all.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from policies.arrays import FloatArray
from policies.exponential import Exponential, ExponentialFitted
from policies.optimal.optimum import Optimal
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedResponse
from policies.reference import BestFixed, Greedy, SameForAlike
from policysim.decision.beliefs import patients_of_belief, strongest_belief
from policysim.decision.evidence import Evidence
from policysim.decision.exchange import ROUNDING, Exchange, as_one_version, exchange, perfect_information
from policysim.decision.prices import uses_hidden
from policysim.decision.redraws import SPREAD, Redrawn
from policysim.decision.textbook import Textbook
from policysim.numbers import DIGITS, NEGLIGIBLE, enough, not_above, population
from policysim.report.findings import (
    BETTER,
    EQUAL,
    NOT_SHOWN,
    UTILITY,
    WORSE,
    Findings,
    hides_of,
    verdict_of_versions,
)
from policysim.report.weighed import LEAST_MOVED, Letters, Weighed, printed_rows, unit_of_exchange
from policysim.study.declared import CohortStudy
from policysim.study.gain import trace
from policysim.study.labels import counted_illustrative, level_in_words
from policysim.study.stated_bounds import broken_bounds
from policysim.study.sweep import evaluate_each, evaluated_on, rows_on
from policysim.utility import COSTS
from policysim.words import ACHIEVABLE, ALL, FOR_ALL, UNBEATABLE, capital, in_a_row, unused

# A screen has room for the columns of so many options.
LETTERS = "ABCDE"
# What is counted of 100 patients where nothing is counted but utility.
HUNDRED = 100
# More public features than these are not named one by one.
MOST_NAMED = 3
# The tables that stand behind.
BEHIND = ("search", "publishing", "record-risk", "beliefs", "prevalence", "price-list")
# The ends of a 95 % interval over the versions of the model.
ENDS = (0.025, 0.975)


class Lettered(NamedTuple):
    """An option: its letter, its policy, and its title."""

    letter: str
    policy: str
    title: str


@dataclass(frozen=True, eq=False, kw_only=True)
class DecisionDetails:
    """The findings of one decision beyond the core of `Findings`.

    Attributes
    ----------
    epsilon, odds : float
        The ε that the words are about, and e^ε: the most by which a treatment changes the odds of any fact.
    stated_epsilon : float
        The ε of the study, at which versions, beliefs and prices are known.
    patients : int
        How many patients events are counted among.
    table : DataFrame
        outcome, title, weight, decimals, a column for each letter, and for two pairs such as "A − C": as
        printed, among `patients`. The differences are those of the printed numbers; those in the row `REST` make
        the columns add up to the utility.
    rest : tuple of str
        The titles of what that row sums.
    hiding, leaking : tuple of str
        The letters of the two pairs: what hides everything and C; B and A.
    pairs : tuple of pairs of letters
        Whose differences are columns of the table.
    broken : mapping of letter to tuple of str
        Which limits of the study each option breaks, in words; without those that break none.
    lead_weight : float
        What one of the leading outcome weighs; 0 for symptoms, each of which has a weight of its own; NaN where none
        leads.
    unit, unit_weight, stated_worth : str, float, float
        The outcome that B saves most of, by its title, what one of it weighs, and how many of them one of the leading
        outcome counts for in the study; "" and NaN where there is none.
    zones : DataFrame
        low, high, verdict: what one of the leading outcome counts for, in that unit, and whether B is then better than
        A. As printed: the ends of what is sure are rounded towards caution. Empty without versions of the unit.
    exchange : Exchange
        The same, with the acceptability curve.
    acceptability : DataFrame
        weight, better, worse.
    perfect_information : tuple of float
        Its expected value per patient, in units of utility and in units of the leading outcome.
    versions : int
        How many there are of the model; 0 where only the stated numbers are known.
    spread : float
        The default spread of numbers without an interval; 0 where none is varied by it.
    drawn : mapping of str to int
        How many numbers vary "together", within "stated" intervals, and by the "default" spread.
    wider : DataFrame
        times, better_in: in how many versions B is better than A with so many times the default spread.
    trace : DataFrame
        policy, epsilon, loss (among `patients`).
    textbook : Textbook or None
        Why the exponential mechanism of the textbook loses more.
    list_true : float
        Where only a list is published at this ε: the share of entries that show the treatment really given; or NaN.
    at_limit : bool
        Whether B loses no more than the least that any private draw can lose.
    same : str
        What B gives everyone, if it gives everyone the same; "" where it does not.
    unlettered : tuple of str
        The policies that were asked for by name, and found no room for a letter.
    judged_by : str
        Whose utility it is: of the weights of the study, or as given.
    same_as_a : bool
        Whether B gives everyone what A gives.
    groups_compared : bool
        Whether the study compares groups of patients.
    idle : tuple of str
        Sentences on what the study states without effect.
    assumed, numbers : int
        How many of the model's numbers are assumed, of how many.
    records : int
        How many are possible.
    sensitivity, range, median_stake : float
        Δ and Γ of the utility; and for half of the patients the treatments differ by no more than the last.
    past_epsilon, past_loss : float
        Of a table of one's own: what hides each patient it was made from, inf unless it is made from private cells;
        and what their noise costs per future patient, in units of utility (`PastPatients.loss`). Else NaN.
    tables : mapping of str to DataFrame
        What stands behind: of `BEHIND`, as far as they apply.
    """

    epsilon: float
    odds: float
    stated_epsilon: float
    patients: int
    table: pd.DataFrame
    rest: tuple[str, ...]
    hiding: tuple[str, str]
    leaking: tuple[str, str]
    pairs: tuple[tuple[str, str], ...]
    broken: Mapping[str, tuple[str, ...]]
    lead_weight: float
    unit: str
    unit_weight: float
    stated_worth: float
    zones: pd.DataFrame
    exchange: Exchange
    acceptability: pd.DataFrame
    perfect_information: tuple[float, float]
    versions: int
    spread: float
    drawn: Mapping[str, int]
    wider: pd.DataFrame
    trace: pd.DataFrame
    textbook: Textbook | None
    list_true: float
    at_limit: bool
    same: str
    unlettered: tuple[str, ...]
    judged_by: str
    same_as_a: bool
    groups_compared: bool
    idle: tuple[str, ...]
    assumed: int
    numbers: int
    records: int
    sensitivity: float
    range: float
    median_stake: float
    past_epsilon: float
    past_loss: float
    tables: Mapping[str, pd.DataFrame]


def find(evidence: Evidence, warnings: Sequence[str] = ()) -> dict[float, Findings]:
    """The findings at each epsilon of the evidence; versions of the model are known at the one that is looked at.

    They differ in their details alone.
    """
    letters = lettered(evidence)
    options = options_table(evidence, letters)
    core = Findings(
        options=options,
        differences=differences_table(evidence, letters),
        harmed=harmed_table(evidence),
        leaks=leaks_table(evidence, letters),
        warnings=(*_warnings(evidence), *warnings),
    )
    return {epsilon: replace(core, details=_details(evidence, letters, epsilon)) for epsilon in evidence.epsilons}


def lettered(evidence: Evidence) -> tuple[Lettered, ...]:
    """The options that get letters, as many as find room: the last that were asked for by name find no room first."""
    compared = {name for name, _ in evidence.rows}
    letters = [(SameForAlike.name, _same_title(evidence)), (evidence.best_private, "Best private draw")]
    letters.append((Greedy.name, "Best for each patient"))
    shown = {_given(evidence, name, evidence.epsilon) for name, _ in letters[:2]}
    if _given(evidence, BestFixed.name, evidence.epsilon) not in shown:
        letters.append((BestFixed.name, _for_everyone(evidence, BestFixed.name)))
    known = {name for name, _ in letters}
    letters += [(name, name) for name in evidence.named if name in compared and name not in known]
    return tuple(Lettered(letter, *option) for letter, option in zip(LETTERS, letters, strict=False))


def _given(evidence: Evidence, name: str, epsilon: float) -> tuple[float, ...]:
    """What everyone gets under a policy, and what it is worth: the same of equal options."""
    row = evidence.rows[name, epsilon]
    shares = [row[f"p_{action}"] for action in evidence.problem.actions]
    return tuple(np.round([row["value"], *shares], 9))


def _for_everyone(evidence: Evidence, name: str) -> str:
    """The treatments that a policy gives, as the title of an option; where contraindications differ, several."""
    row, titles = evidence.rows[name, evidence.epsilon], evidence.labels.actions
    given = sorted((action for action in titles if row[f"p_{action}"] > 0), key=lambda action: -row[f"p_{action}"])
    return f"{capital(evidence.labels.for_all(given))} for everyone"


def _same_title(evidence: Evidence) -> str:
    """The title of A: one treatment for everyone, or the best by what is public."""
    row, labels = evidence.rows[SameForAlike.name, evidence.epsilon], evidence.labels
    public = [name for name in evidence.problem.records.names if name not in labels.hidden_features]
    one_for_all = max(row[f"p_{action}"] for action in labels.actions) > 1 - NEGLIGIBLE
    if one_for_all or not labels.hidden_features or not public:
        return _for_everyone(evidence, SameForAlike.name)
    by = in_a_row([name.replace("_", " ") for name in public], "and") if len(public) <= MOST_NAMED else "what is public"
    return f"Best treatment by {by}"


def options_table(evidence: Evidence, letters: Sequence[Lettered]) -> pd.DataFrame:
    """The comparison of everyone with letters: lettered options first, then all other policies ("beside")."""
    table = evidence.everyone.reset_index(drop=True).drop(columns=["group", "level", "share"])
    place = {option.policy: option for option in letters}
    labels = evidence.labels
    titles = {f"{FOR_ALL}{name}": f"{capital(title)} for everyone" for name, title in labels.actions.items()}
    low, high = _value_interval(evidence)
    stated = table["epsilon"] == evidence.epsilon
    first = {
        "section": ["option" if name in place else "beside" for name in table["policy"]],
        "option": [place[name].letter if name in place else "" for name in table["policy"]],
        "title": [place[name].title if name in place else titles.get(name, name) for name in table["policy"]],
        "policy": table["policy"],
        "epsilon": table["epsilon"],
        "hides": table["epsilon_spent"].map(hides_of),
        "value": table["value"],
        "low": table["policy"].map(low).where(stated),
        "high": table["policy"].map(high).where(stated),
    }
    made = pd.DataFrame(first).join(table.drop(columns=["policy", "epsilon", "value"]))
    bounds = made["policy"].isin([ACHIEVABLE, UNBEATABLE])
    made.loc[bounds, ["section", "hides"]] = ["limit", ""]
    order = made["option"].replace("", "Z").sort_values(kind="stable").index
    return made.loc[order].reset_index(drop=True)


def _value_interval(evidence: Evidence) -> tuple[pd.Series, pd.Series]:
    """Between which values 95 of 100 versions lie, by policy."""
    if evidence.versions is None:
        return pd.Series(dtype=float), pd.Series(dtype=float)
    values = evidence.versions.options.groupby("option")["value"]
    return values.quantile(ENDS[0]), values.quantile(ENDS[1])


def _pairs(evidence: Evidence, letters: Sequence[Lettered], epsilon: float) -> list[tuple[str, str]]:
    """Which options are compared: hiding everything, leaking, privacy in all, and those beyond C against A.

    Where B hides everything, too, and is another option than A, hiding costs B, the best of those by the weights.
    """
    of_a, of_b = (evidence.rows[option.policy, epsilon] for option in letters[:2])
    other = abs(of_a["value"] - of_b["value"]) > ROUNDING * abs(of_a["value"])
    hiding = "B" if of_b["epsilon_spent"] < NEGLIGIBLE and other else "A"
    first = [(hiding, "C"), ("B", "A"), ("A", "C"), ("B", "C")]
    return list(dict.fromkeys([*first, *((option.letter, "A") for option in letters[3:])]))


def differences_table(evidence: Evidence, letters: Sequence[Lettered]) -> pd.DataFrame:
    """The differences of pairs of options in each outcome and in utility, at each epsilon, with verdicts.

    At the stated epsilon versions of the model decide, where there are such; elsewhere the stated numbers alone.
    """
    policy = {option.letter: option.policy for option in letters}
    names = [(name, f"expected_{name}", -1.0) for name in evidence.outcomes]
    measures = [*names, (UTILITY, "value", 1.0)]
    rows = []
    for epsilon in evidence.epsilons:
        for option, than in _pairs(evidence, letters, epsilon):
            for outcome, column, sign in measures:
                mine, other = (float(evidence.rows[policy[letter], epsilon][column]) for letter in (option, than))
                row = {"epsilon": epsilon, "option": option, "than": than, "outcome": outcome}
                across = None
                if evidence.versions is not None and epsilon == evidence.epsilon:
                    across = evidence.versions.differences(policy[option], policy[than], column)
                rows.append(row | judged(mine, other, sign, across))
    return pd.DataFrame(rows)


def judged(mine: float, other: float, sign: float, versions: FloatArray | None) -> dict[str, object]:
    """A difference with its interval and verdict; `sign` is 1 where more is better, and −1 where less is."""
    value = mine - other
    value = 0.0 if abs(value) <= ROUNDING * max(abs(mine), abs(other)) else value
    if versions is None:
        verdict = EQUAL if value == 0 else BETTER if sign * value > 0 else WORSE
        return {"value": value, "low": math.nan, "high": math.nan, "verdict": verdict, "better_in": math.nan}
    better, equal = float(np.mean(sign * versions > 0)), float(np.mean(versions == 0))
    low, high = np.quantile(versions, ENDS)
    verdict = verdict_of_versions(better, equal)
    return {"value": value, "low": low, "high": high, "verdict": verdict, "better_in": round(better * len(versions))}


def leaks_table(evidence: Evidence, letters: Sequence[Lettered]) -> pd.DataFrame:
    """How far the belief that moves most under B moves under each option, at each epsilon."""
    belief = strongest_belief(evidence.tables.get("beliefs"))
    if belief is None:
        return pd.DataFrame()
    problem = evidence.problem
    believed = patients_of_belief(problem, belief)
    jobs = {
        (option.letter, epsilon): evidence.policy(option.policy, epsilon)
        for option in letters
        for epsilon in evidence.epsilons
    }
    spans = evaluate_each(dict.fromkeys(jobs.values()), lambda policy: _span(problem, policy, believed))
    before = belief["belief"], belief["among"], float(belief["before"])
    rows = [(epsilon, letter, *before, *spans[policy]) for (letter, epsilon), policy in jobs.items()]
    return pd.DataFrame(rows, columns=["epsilon", "option", "belief", "among", "before", "low", "high"])


def harmed_table(evidence: Evidence) -> pd.DataFrame:
    """The groups that are harmed by B instead of A at the stated epsilon, most harmed first.

    Groups within groups, too: a subgroup that gains hides no other that loses. One that is harmed less than a group
    that it belongs to says nothing new.
    """
    groups = evidence.harmed
    worse = groups[groups["value"] > LEAST_MOVED].sort_values("value", ascending=False, kind="stable")
    records = evidence.problem.records
    names = [
        level_in_words(records, group, level) + ("" if within == ALL else f", {level_in_words(records, within, inner)}")
        for group, level, within, inner in worse[["group", "level", "within", "within_level"]].to_numpy()
    ]
    pair = {"epsilon": evidence.epsilon, "option": "B", "than": "A"}
    table = pd.DataFrame({**pair, "group": names, "share": worse["share"], "value": worse["value"]})
    # First the group of one feature that is hit hardest, as it stands for more patients than its subgroups.
    order = table.assign(whole=worse["within"].eq(ALL)).sort_values("whole", ascending=False, kind="stable")
    return order.reset_index(drop=True)


def _span(problem: DecisionProblem, policy: Policy, believed: tuple[FloatArray, FloatArray]) -> tuple[float, float]:
    """The least and the largest belief after a treatment that some of these patients get."""
    on = evaluated_on(policy, problem)
    row, table = rows_on(on, problem), policy.probabilities(on)
    everyone, leveled = (np.bincount(row, patients, on.n_records) for patients in believed)
    given = everyone @ table
    happens = given > NEGLIGIBLE * everyone.sum()
    after = (leveled @ table)[happens] / given[happens]
    return float(after.min()), float(after.max())


def _warnings(evidence: Evidence) -> list[str]:
    """What must be known before the rest is read: nothing hidden matters, or stated bounds are broken."""
    study, labels = evidence.study, evidence.labels
    stated = evidence.everyone
    stated = stated[stated["epsilon"] == evidence.epsilon]
    bounds = ({}, {}) if study is None else (study.at_most, study.capacity)
    broken = broken_bounds(evidence.problem, *bounds, stated, labels.outcomes)
    first = [] if uses_hidden(evidence.problem) else [unused()]
    lead = evidence.lead
    if lead is not None and not np.ptp(evidence.problem.outcomes[lead], axis=1).any():
        first.append(f"No option changes {labels.lead_title}: the outcome that leads is the same under each treatment.")
    return [*first, *(f"{policy}: {', '.join(words)}." for policy, words in broken.items())]


def _broken_limits(evidence: Evidence, now: Letters) -> dict[str, tuple[str, ...]]:
    """Which limits of the study each option with a letter breaks."""
    study = evidence.study
    if study is None:
        return {}
    rows = pd.DataFrame([{**row, "policy": letter} for letter, row in now.items()])
    return broken_bounds(evidence.problem, study.at_most, study.capacity, rows, evidence.labels.outcomes)


def _details(
    evidence: Evidence,
    letters: Sequence[Lettered],
    epsilon: float,
) -> DecisionDetails:
    """The table as it is printed, what is named in sentences, the exchange, the trace, and the textbook's mechanism."""
    problem, labels, weights = evidence.problem, evidence.labels, evidence.weights
    pairs = _pairs(evidence, letters, epsilon)
    now = {option.letter: evidence.rows[option.policy, epsilon] for option in letters}
    rates = [row[f"expected_{name}"] for row in now.values() for name in evidence.outcomes]
    count = population(rates) if rates else HUNDRED
    # Where B hides everything, too, hiding everything costs A against C as well.
    printed = pairs[:2] if pairs[0] == ("A", "C") else [pairs[0], ("A", "C"), pairs[1]]
    titles = {name: _title(evidence, name) for name in evidence.outcomes}
    of = Weighed(evidence.outcomes, evidence.lead, weights, titles)
    rows, rest = printed_rows(of, now, printed, count)
    unit = unit_of_exchange(of, rows, " − ".join(pairs[1]))
    unit_weight = math.nan if unit is None else weights[unit]
    versions = evidence.versions if epsilon == evidence.epsilon else None
    lead_weight = weights.get(labels.lead, 0.0) if weights and labels.lead else math.nan
    exchanged = exchange_of(evidence, letters, versions, epsilon)
    copies = evidence.rows.get((RandomizedResponse.name, epsilon))
    assumed, numbers = counted_illustrative(evidence.study)
    study, past, hides_past = evidence.study, None, math.nan
    if isinstance(study, CohortStudy):
        past = study.past
        hides_past = math.inf if past is None else enough(past.epsilon, 6)
    return DecisionDetails(
        epsilon=epsilon,
        odds=math.exp(epsilon) if epsilon < math.log(sys.float_info.max) else math.inf,
        stated_epsilon=evidence.epsilon,
        patients=count,
        table=rows,
        rest=rest,
        hiding=pairs[0],
        pairs=tuple(printed),
        leaking=pairs[1],
        broken=_broken_limits(evidence, now),
        lead_weight=lead_weight,
        unit="" if unit is None else titles[unit],
        unit_weight=unit_weight,
        stated_worth=lead_weight / unit_weight,
        zones=printed_zones(exchanged.zones, unit_weight),
        exchange=exchanged,
        acceptability=pd.DataFrame() if versions is None else exchanged.acceptability,
        perfect_information=(math.nan, math.nan) if versions is None else _perfect_information(evidence, letters),
        versions=0 if versions is None else exchanged.versions,
        spread=SPREAD if versions is not None and versions.drawn.get("default") else 0.0,
        drawn={} if versions is None else versions.drawn,
        wider=pd.DataFrame() if versions is None else wider_versions(versions, letters),
        trace=trace_table(evidence, epsilon, count),
        textbook=evidence.textbook,
        list_true=math.nan if copies is None else float(copies["best_action_rate"]),
        at_limit=_at_limit(evidence, rows, epsilon),
        same=_same_for_all(evidence, letters[1].policy, epsilon),
        unlettered=tuple(name for name in evidence.named if name not in {option.policy for option in letters}),
        judged_by="the weights of this study" if weights else "the given utilities",
        same_as_a=_given(evidence, letters[0].policy, epsilon) == _given(evidence, letters[1].policy, epsilon),
        groups_compared=bool(evidence.study is not None and evidence.study.by),
        idle=evidence.idle,
        assumed=assumed,
        numbers=numbers,
        records=problem.n_records,
        sensitivity=problem.sensitivity.value,
        range=problem.sensitivity.range,
        median_stake=math.nan if evidence.textbook is None else evidence.textbook.median_difference,
        past_epsilon=hides_past,
        past_loss=math.nan if past is None or study is None else past.loss(study.utility, problem.actions),
        tables={name: evidence.tables[name] for name in BEHIND if name in evidence.tables},
    )


def _title(evidence: Evidence, outcome: str) -> str:
    """What people call an outcome."""
    return "units of cost" if outcome == COSTS else evidence.labels.outcomes.get(outcome, outcome.replace("_", " "))


def _at_limit(evidence: Evidence, rows: pd.DataFrame, epsilon: float) -> bool:
    """Whether B loses, as printed, what any private draw loses at least, by a proof that was checked."""
    everyone, lost = evidence.everyone, rows[rows["outcome"] == UTILITY].iloc[0]
    least = float(everyone.loc[everyone["epsilon"] == epsilon, "least_loss"].max())
    return bool(round(least * lost["patients"], int(lost["decimals"])) >= lost["B"])


def _same_for_all(evidence: Evidence, policy: str, epsilon: float) -> str:
    """What a policy that says nothing about the record gives everyone; "" of any other."""
    row = evidence.rows[policy, epsilon]
    if row["epsilon_spent"] >= NEGLIGIBLE:
        return ""
    given = [title for name, title in evidence.labels.actions.items() if row[f"p_{name}"] > NEGLIGIBLE]
    return " or ".join(given)


def _perfect_information(evidence: Evidence, letters: Sequence[Lettered]) -> tuple[float, float]:
    """Its expected value where A or B is chosen."""
    assert evidence.versions is not None
    names = [option.policy for option in letters[:2]]
    weight = evidence.weights.get(evidence.labels.lead or "", math.nan)
    return perfect_information(evidence.versions.options, names, weight)


def wider_versions(versions: Redrawn, letters: Sequence[Lettered]) -> pd.DataFrame:
    """In how many versions B is better than A with a wider default spread: times, better_in."""
    policy = {option.letter: option.policy for option in letters}
    rows = []
    for times, table in versions.wider.groupby("times"):
        better = exchange(table, policy["B"], policy["A"], lead=None, weight=math.nan).better
        rows.append((times, better))
    return pd.DataFrame(rows, columns=["times", "better_in"])


def printed_zones(zones: pd.DataFrame, unit_weight: float) -> pd.DataFrame:
    """The zones of an exchange in units of another outcome; the ends of what is sure are rounded towards caution."""
    if not unit_weight > 0 or len(zones) < 2:
        return zones.iloc[:0]
    ends = []
    for place in range(len(zones) - 1):
        end, before, after = zones["high"].iloc[place] / unit_weight, *zones["verdict"].iloc[place : place + 2]
        if NOT_SHOWN in (before, after):
            ends.append(enough(end, DIGITS) if before == NOT_SHOWN else not_above(end, DIGITS))
        else:
            ends.append(float(f"{end:.3g}"))
    return zones.assign(low=[0.0, *ends], high=[*ends, math.inf])


def exchange_of(evidence: Evidence, letters: Sequence[Lettered], versions: Redrawn | None, epsilon: float) -> Exchange:
    """On what it depends whether B is better than A: over versions of the model, or by the stated numbers alone."""
    lead, policy = evidence.lead, {option.letter: option.policy for option in letters}
    table = as_one_version(evidence.tables["comparison"], epsilon) if versions is None else versions.options
    weight = evidence.weights.get(lead or "", 0.0)
    return exchange(table, policy["B"], policy["A"], lead=lead, weight=weight)


def trace_table(evidence: Evidence, epsilon: float, count: int) -> pd.DataFrame:
    """Utility lost over a few epsilons: the limit, the exponential mechanisms, and what was asked for by name."""
    compared = {name for name, _ in evidence.rows}
    limit = Optimal.name if Optimal.name in compared else UNBEATABLE
    names = [limit, ExponentialFitted.name, Exponential.name, *evidence.named]
    rows = [
        {"policy": name, "epsilon": value, "loss": float(evidence.rows[name, value]["loss"]) * count}
        for name in dict.fromkeys(names)
        if name in compared
        for value in trace(evidence.epsilons, epsilon)
        if (name, value) in evidence.rows
    ]
    return pd.DataFrame(rows, columns=["policy", "epsilon", "loss"])
