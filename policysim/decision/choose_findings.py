"""What `policysim choose` finds: the options, which demands each meets, what is chosen, and what is proved."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from policies.optimal.bounds import InfeasibleError
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Greedy
from policysim.decision.choose import Choices, Verdict, Wish, row_of
from policysim.decision.demands import make_demand
from policysim.decision.find import judged
from policysim.decision.prices import uses_hidden
from policysim.decision.redraws import Redrawn
from policysim.numbers import LEAST_EVENTS, MOST_COUNTED, apart, next_below, population
from policysim.report.findings import BETTER, NOT_SHOWN, UTILITY, Findings, rows_of
from policysim.study.declared import Study
from policysim.study.gain import by_lot_loss, gain_of
from policysim.study.labels import Labels
from policysim.study.stated_bounds import broken_bounds
from policysim.study.sweep import evaluated_on
from policysim.words import FOR_ALL, unused

# The mechanisms that are shown: those that need least.
MOST_MECHANISMS = 6
# What is chosen: a mechanism that is better than the best single treatment; a single treatment that meets the demands;
# the best single treatment, because no mechanism that meets them is shown to be better; the best for each, of which
# only a randomised copy is seen. Or nothing: because no mechanism can, because none was found, or because the log is
# doubtful.
MECHANISM, SINGLE, UNSURE, EACH, IMPOSSIBLE, OPEN = "mechanism", "single", "unsure", "each", "impossible", "open"
DOUBTED = "doubted"


@dataclass(frozen=True, kw_only=True)
class ChooseDetails:
    """What only `choose` finds.

    Attributes
    ----------
    wish : Wish
        The demands.
    rows : DataFrame
        `Choices.needs`: each mechanism at its least epsilon.
    for_all : DataFrame
        Each treatment for everybody, as `rows`.
    demands : DataFrame
        option, epsilon, demand, outcome, limit, value and met: for each option with a letter, and for B at the next
        smaller epsilon if that is not proved impossible for all.
    verdicts : DataFrame
        policy, value, low, high, verdict and better_in (NaN where nothing varies): the difference in utility from the
        best single treatment by utility, which is "best-fixed".
    versions : int
        Of the model; 0 where the stated numbers alone are known, and of a log.
    of_log : bool
        Whether patients held out decide.
    clusters : int
        How many clusters these are in; 0 where they are independent.
    choice : str
        Why that is chosen: one of the constants of this module.
    chosen : str
        The letter of what is chosen; "" for none.
    single : str
        The letter of the best single treatment by utility.
    lead : str or None
        The outcome that leads, if it can happen.
    patients : int
        Among whom events are counted.
    next_epsilon : float
        The next smaller number of as many digits as B's epsilon; NaN without B.
    raised : bool
        Whether B meets the demands at a smaller epsilon, at which it is not better than the best single treatment.
    next_impossible : bool
        Whether no mechanism meets the demands there, by a proof that was checked.
    limit, limit_proven, least_possible, certificate, verdict
        As `Choices` has them.
    possible : bool or None
        The verdict in short: None where it is open.
    shares : bool
        Whether shares of the gain are worth printing: the best for each is better than the best single treatment.
    beyond : str
        The limits of the study that what is chosen breaks, in words; "" for none. They are no demands.
    copy_epsilon : float
        The epsilon at which `compare` randomises a published copy; NaN without a study.
    """

    wish: Wish
    rows: pd.DataFrame
    for_all: pd.DataFrame
    demands: pd.DataFrame
    verdicts: pd.DataFrame
    versions: int
    of_log: bool
    clusters: int
    choice: str
    chosen: str
    single: str
    lead: str | None
    patients: int
    next_epsilon: float
    raised: bool
    next_impossible: bool
    limit: float
    limit_proven: bool
    least_possible: Mapping[str, float]
    certificate: Mapping[str, Any] | None
    verdict: str
    possible: bool | None
    shares: bool
    beyond: str
    copy_epsilon: float


NO_BEST_ARM = (
    "The data do not show which single treatment is the best. The one named here is the best by the fitted scores."
)


class Candidate(NamedTuple):
    """An option with a letter: its policy, and its row as `Choices` has it."""

    letter: str
    title: str
    hides: str
    policy: Policy
    row: dict[str, Any]

    def gives(self, row: Mapping[str, Any] | None) -> bool:
        """Whether a row is of this option: of the same policy, or of the same treatment for everyone."""
        if row is None:
            return False
        return bool(self.row["policy"] == row["policy"] or (row["actions"] and self.row["actions"] == row["actions"]))


def find(
    problem: DecisionProblem,
    choices: Choices,
    labels: Labels,
    *,
    versions: Redrawn | None = None,
    held_out: pd.DataFrame | None = None,
    study: Study | None = None,
) -> Findings:
    """Judge the mechanisms, and choose.

    Parameters
    ----------
    problem : DecisionProblem
        What is decided.
    choices : Choices
        From `policysim.decision.choose.choose`.
    labels : Labels
        Words for its parts.
    versions : Redrawn, optional
        What each policy, and each treatment for everyone, is worth in each version of the model; None if the stated
        numbers alone are known.
    held_out : DataFrame, optional
        Of a log: policy, value, low, high and verdict on patients held out, which then decide. Beside
        `.attrs["errors"]` of the log nothing is chosen; `.attrs["others"]` are further warnings.
    study : Study, optional
        What the problem was made from.
    """
    each = row_of(problem, Greedy.name, Greedy().probabilities(problem), math.inf, math.inf)
    each["allowed"] = choices.wish.demand(problem).margin(problem, Greedy().probabilities(problem)) >= 0
    needs = rows_of(choices.needs[choices.needs["epsilon"] < math.inf])
    best_single = rows_of(choices.for_all)[0]
    verdicts = pd.DataFrame(
        {"policy": row["policy"], **_verdict(row, best_single, versions, held_out)} for row in [each, *needs]
    )
    published = study is not None and study.seen == "publication"
    better = {*verdicts.loc[verdicts["verdict"] == BETTER, "policy"]}
    about_log = {} if held_out is None else held_out.attrs
    errors = about_log.get("errors", ())
    choice, chosen = (DOUBTED, None) if errors else decided(choices, better, each if published else None)
    mechanism = chosen if choice == MECHANISM else next(iter(sorted(needs, key=lambda row: not row["allowed"])), None)
    candidates = _candidates(problem, choices, labels, chosen=chosen, mechanism=mechanism, each=each)
    demands = [row for candidate in candidates for row in _checked(problem, choices.wish, candidate)]
    second = next((candidate for candidate in candidates if candidate.letter == "B"), None)
    below = next_below(second.row["epsilon"]) if second is not None and second.row["epsilon"] > 0 else math.nan
    impossible = second is not None and choices.attains(second.row["epsilon"])
    if second is not None and below > 0 and not impossible:
        # Where the bounds cannot be kept there is no mechanism, and nothing to check.
        with suppress(InfeasibleError):
            demands += _checked(problem, choices.wish, _at(problem, second, below))
    patients, options = _options(choices, candidates, verdicts, chosen)
    letter = next((candidate.letter for candidate in candidates if candidate.gives(chosen)), "")
    broken = {} if study is None else _broken(problem, study, candidates, labels)
    details = ChooseDetails(
        wish=choices.wish,
        rows=choices.needs,
        for_all=choices.for_all,
        demands=pd.DataFrame(demands),
        verdicts=verdicts,
        versions=0 if versions is None else versions.options["draw"].nunique(),
        of_log=held_out is not None,
        clusters=about_log.get("clusters", 0),
        choice=choice,
        chosen=letter,
        single=next(candidate.letter for candidate in candidates if candidate.gives(best_single)),
        lead=choices.lead,
        patients=patients,
        next_epsilon=below,
        raised=second is not None and second.row["policy"] == choices.raised,
        next_impossible=impossible,
        limit=choices.limit,
        limit_proven=choices.limit_proven,
        least_possible=choices.least_possible,
        certificate=choices.certificate,
        verdict=choices.verdict.value,
        possible={Verdict.CAN: True, Verdict.CANNOT: False}.get(choices.verdict),
        shares=gain_of(problem).has_shares and Greedy.name in better,
        beyond=broken.get(letter, ""),
        copy_epsilon=math.nan if study is None else study.epsilon,
    )
    return Findings(
        options=options,
        differences=pd.DataFrame(
            {"epsilon": second.row["epsilon"], "option": "B", "than": "A", "outcome": outcome}
            | _verdict(second.row, candidates[0].row, versions, held_out, outcome)
            for outcome in (UTILITY, choices.lead)
            if second is not None and outcome is not None
        ),
        harmed=pd.DataFrame(),
        leaks=pd.DataFrame(),
        warnings=(
            *(() if uses_hidden(problem) else (unused(),)),
            *errors,
            *about_log.get("others", ()),
            *(f"{option}: {words}." for option, words in broken.items()),
            *(() if about_log.get("best_arm", True) else (NO_BEST_ARM,)),
        ),
        details=details,
    )


def decided(
    choices: Choices, better: Collection[str], published: Mapping[str, Any] | None = None
) -> tuple[str, dict[str, Any] | None]:
    """Why something is chosen, and its row; None where nothing is.

    Parameters
    ----------
    choices : Choices
        What meets the demands.
    better : collection of str
        The policies with the verdict that they are better than the best single treatment by utility.
    published : dict, optional
        The row of the best for each, where an observer sees a publication alone.
    """
    if published is not None and published["allowed"] and Greedy.name in better:
        return EACH, dict(published)
    if choices.for_all["allowed"].any():
        return SINGLE, choices.least
    allowed = rows_of(choices.needs[choices.needs["allowed"]])
    for row in allowed:
        if row["policy"] in better:
            return MECHANISM, row
    if allowed:
        return UNSURE, rows_of(choices.for_all)[0]
    return (IMPOSSIBLE if choices.verdict is Verdict.CANNOT else OPEN), None


def _candidates(
    problem: DecisionProblem,
    choices: Choices,
    labels: Labels,
    *,
    chosen: dict[str, Any] | None,
    mechanism: dict[str, Any] | None,
    each: dict[str, Any],
) -> list[Candidate]:
    """The options with letters.

    A is the single treatment with the least of the lead, visibly, or else the best by utility; B the mechanism; C the
    best for each; D and E the best single treatment by utility, and the one that is chosen, if they are others.
    """
    singles = rows_of(choices.for_all)
    expected = f"expected_{choices.lead}"
    fewest = min(singles, key=lambda row: float(row.get(expected, 0.0)))
    visible = (singles[0].get(expected, 0.0) - fewest.get(expected, 0.0)) * MOST_COUNTED >= LEAST_EVENTS

    def single(letter: str, row: dict[str, Any]) -> Candidate:
        name = row["policy"].removeprefix(FOR_ALL)
        action = problem.actions.index(name) if name in problem.actions else None
        return Candidate(letter, labels.for_all(row["actions"]), "everything", BestFixed(action=action), row)

    found = [single("A", fewest if visible else singles[0])]
    if mechanism is not None:
        policy = choices.mechanisms[mechanism["policy"]]
        found.append(Candidate("B", mechanism["policy"], "up to ε", policy, mechanism))
    found.append(Candidate("C", "best for each patient", "nothing", Greedy(), each))
    for row in (singles[0], chosen):
        if row is not None and not any(candidate.gives(row) for candidate in found):
            found.append(single("DE"[sum(candidate.letter > "C" for candidate in found)], row))
    return found


def _at(problem: DecisionProblem, candidate: Candidate, epsilon: float) -> Candidate:
    """A mechanism at another epsilon."""
    policy = replace(candidate.policy, epsilon=epsilon)
    on = evaluated_on(policy, problem)
    row = row_of(on, policy.name, policy.probabilities(on), epsilon, epsilon)
    return candidate._replace(policy=policy, row=row)


def _checked(problem: DecisionProblem, wish: Wish, candidate: Candidate) -> Iterator[dict[str, Any]]:
    """Each demand by itself, and whether an option meets it."""
    row, on = candidate.row, evaluated_on(candidate.policy, problem)
    table = candidate.policy.probabilities(on)
    by_lot, lead = float(by_lot_loss(problem)), problem.lead or ""
    values = {
        "keep": row["benefit_kept"],
        "max_loss": row["loss"] / by_lot if by_lot else math.nan,
        "max_guess": row["right_guesses"],
        "max_guess_rate": row["guess_rate"],
    }
    if lead:
        fixed = float(problem.prior @ problem.of_best_fixed(problem.outcomes[lead]))
        values["max_extra_lead"] = row[f"expected_{lead}"] - fixed
    guesses = {
        "max_guess": row["epsilon"] <= wish.max_epsilon,
        "max_guess_rate": not row["guess_rate"] > wish.most_guessed,
    }
    option = {"option": candidate.letter, "epsilon": row["epsilon"]}
    for name, value in values.items():
        if (limit := getattr(wish, name)) is not None:
            alone = None if name in guesses else make_demand(problem, **{name: limit})
            met = guesses[name] if alone is None else alone.margin(on, table) >= 0
            outcome = lead if name == "max_extra_lead" else ""
            yield option | {"demand": name, "outcome": outcome, "limit": limit, "value": value, "met": bool(met)}
    for outcome, most in wish.at_most.items():
        alone = make_demand(problem, at_most={outcome: most})
        met, value = alone.margin(on, table) >= 0, row[f"expected_{outcome}"]
        limit = alone.at_most[outcome]
        yield option | {"demand": "at_most", "outcome": outcome, "limit": limit, "value": value, "met": bool(met)}


def _broken(problem: DecisionProblem, study: Study, candidates: Sequence[Candidate], labels: Labels) -> dict[str, str]:
    """The limits of the study that options break, in words, by their letters: they are no demands."""
    rows = []
    for candidate in candidates:
        on = evaluated_on(candidate.policy, problem)
        shares = zip(on.actions, on.prior @ candidate.policy.probabilities(on), strict=True)
        rows.append(candidate.row | {"policy": candidate.letter} | {f"p_{action}": share for action, share in shares})
    broken = broken_bounds(problem, study.at_most, study.capacity, pd.DataFrame(rows), labels.outcomes)
    return {letter: ", ".join(words) for letter, words in broken.items()}


def _verdict(
    one: Mapping[str, Any],
    other: Mapping[str, Any],
    versions: Redrawn | None,
    held_out: pd.DataFrame | None,
    outcome: str = UTILITY,
) -> dict[str, Any]:
    """The difference of two rows, and whether the first is better: on patients held out, or by versions."""
    column, sign = ("value", 1.0) if outcome == UTILITY else (f"expected_{outcome}", -1.0)
    across = None if versions is None else versions.differences(one["policy"], other["policy"], column)
    found = judged(one[column], other[column], sign, across)
    if held_out is None:
        return found
    known = rows_of(held_out.loc[held_out["policy"] == one["policy"], ["value", "low", "high", "verdict"]])
    return {**found, "verdict": NOT_SHOWN, **next(iter(known), {})}


def _options(
    choices: Choices,
    candidates: Sequence[Candidate],
    verdicts: pd.DataFrame,
    chosen: Mapping[str, Any] | None,
) -> tuple[int, pd.DataFrame]:
    """The patients among whom events are counted; and the options with letters, then the other mechanisms."""
    lettered = [
        {"section": "option", "option": one.letter, "title": one.title, "hides": one.hides, **one.row}
        for one in candidates
    ]
    others = [
        {"section": "mechanism", "option": "", "title": row["policy"], "hides": "up to ε", **row}
        for row in rows_of(choices.needs)[:MOST_MECHANISMS]
        if not any(one.gives(row) for one in candidates)
    ]
    options = pd.DataFrame([*lettered, *others]).drop(columns="actions").assign(low=math.nan, high=math.nan)
    options["chosen"] = [one.gives(chosen) for one in candidates] + [False] * len(others)
    options = options.join(verdicts.set_index("policy")[["verdict", "better_in"]], on="policy")
    counted = [f"expected_{name}" for name in dict.fromkeys([choices.lead, *choices.wish.at_most]) if name]
    rates = options[counted] if counted else options["loss"]
    patients = population(rates.to_numpy(dtype=np.float64).ravel())
    options["more_lead"] = math.nan
    if choices.lead is not None:
        # Of the numbers as they are printed: who subtracts them finds the same.
        expected = options[f"expected_{choices.lead}"].astype(np.float64)
        shown = (expected * patients).round(apart(expected.dropna(), patients)) / patients
        options["more_lead"] = shown - shown.iloc[0]
    return patients, options
