"""Does the scenario `stroke` predict patients that it was not fitted to, and were its policies worth what it says?

The scenario is fitted to all patients of the trial. `python examples/stroke_calibration.py` fits halves of them in the
same way, and writes reports/stroke-calibration: events seen in the half that was kept out, beside those predicted, for
each arm and risk group; and how patients were after six months who had no part in making a policy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from experiment_report import Asked, run, table_section
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.stats import beta, chi2
from stroke_fit import design_of, fit, precision_of
from stroke_scenario import TITLES as ARM_TITLES
from stroke_scenario import Fitted
from stroke_trial import (
    ARMS,
    EVENTS,
    FEATURES,
    OUTCOMES,
    SEED,
    FloatArray,
    fitted_half,
    given,
    indicators,
    levels_of,
    read_patients,
)

from envs.cohort import prior
from envs.scenario import Scenario
from envs.scenario_reader import load_scenario
from envs.treatment_response import ResponseModel
from envs.utility import default_utility
from policysim.figures.card import Curves
from policysim.figures.described import LOOKS, Described
from policysim.question.answer import Headline
from policysim.question.protocol import Progress
from policysim.sources.engine import Section, SingleRun, SourceFindings, SourceRow
from policysim.study.declared import ScenarioStudy
from policysim.study.study_problem import build_problem
from policysim.study.study_reader import load_study

GROUPS = 5  # fifths of the untreated risk of the fitted half
TAIL = 0.025  # beyond each end of a 95 % band
FIGURE = "predicted-and-observed"
LEVEL = 0.05  # of one test for a departure
OTHERS = range(2, 22)  # seeds of other halves
Z = 1.96  # of a 95 % interval
EPSILON = 1.0
# The scenario's policies, and what each is called.
POLICIES = {
    "best-fixed": "one treatment for all, the scenario's best",
    "greedy": "each's best by the scenario",
    "optimal": f"best private choice, ε = {EPSILON:g}",
    "exponential": f"exponential mechanism, ε = {EPSILON:g}",
}
# At six months.
INDEPENDENT = ("recovered", "not recovered")
N_SHOWN = 8  # departures and pairs of features on the page
# The reports beside this one, and why they say something else.
RELATED = {
    "stroke": "the scenario itself, fitted to all: what a private choice costs, by what happens within 14 days.",
    "ist": "the trial by arms, and policies made from its scores: alive and independent after six months.",
    "ist-14-days": "the same of 14 days: alive and without another stroke. Here each event is counted by itself.",
}
TITLES = {**{event: title for event, (title, _) in EVENTS.items()}, "death": "death"}


@dataclass(frozen=True)
class Calibration:
    """The patients of the trial, the scenario that is fitted to all of them, and the same fit to half of them.

    Attributes
    ----------
    scenario : Scenario
        Fitted to all.
    patients : DataFrame
        As records.
    fitted : array of bool, (n,)
        Who is in the half.
    chances : array, (n, treatments, outcomes)
        P(outcome | patient, treatment) by the fit to the half.
    """

    scenario: Scenario
    patients: pd.DataFrame
    fitted: NDArray[np.bool_]
    chances: FloatArray

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The patients who were kept out, by outcome, arm and group of risk; see `cells_of`."""
        return cells_of(self.patients, self.fitted, self.chances)

    @cached_property
    def arms(self) -> pd.DataFrame:
        """The same question asked of the trial and of the scenario: who has an event, by outcome and arm.

        Columns: outcome, arm, observed (a share of all patients of the arm), low, high (its exact 95 % interval:
        Clopper & Pearson 1934), expected (by the scenario, over its prior).
        """
        response, weight = ResponseModel(self.scenario), prior(self.scenario)
        rows = []
        for outcome in OUTCOMES:
            for arm, expected in zip(ARMS, weight @ response.probability(outcome), strict=True):
                happened = self.patients.loc[self.patients["arm"] == arm, outcome]
                seen, n = int(happened.sum()), len(happened)
                low, high = beta.ppf([TAIL, 1 - TAIL], [seen, seen + 1], [n - seen + 1, n - seen])
                rows.append((outcome, arm, seen / n, low, high, expected))
        return pd.DataFrame(rows, columns=["outcome", "arm", "observed", "low", "high", "expected"])

    def apart(self, features: int) -> pd.Series:
        """Total variation between the prior and all patients, for each set of so many features; the largest first."""
        space = self.scenario.space
        counted = np.bincount(space.encode(self.patients), minlength=space.size) / len(self.patients)
        difference = (prior(self.scenario) - counted).reshape(space.shape)
        found = {}
        for names in combinations(space.names, features):
            others = tuple(axis for axis, name in enumerate(space.names) if name not in names)
            found[", ".join(names)] = float(np.abs(difference.sum(axis=others)).sum() / 2)
        return pd.Series(found).sort_values(ascending=False)


def cells_of(patients: pd.DataFrame, fitted: FloatArray, chances: FloatArray) -> pd.DataFrame:
    """The patients who were not fitted, by outcome, arm and group of risk, the lowest first.

    Columns: outcome, arm, group, patients, observed, predicted, low, high, inside. Between low and high, inclusive, the
    observed number of events lies with probability >= 95 % if the chances, (n, treatments, outcomes), are right: it is
    the sum of independent events that each have their own.
    """
    arms, rows = patients["arm"].to_numpy(), []
    for position, outcome in enumerate(OUTCOMES):
        untreated = chances[:, 0, position]
        cuts = np.quantile(untreated[fitted], np.arange(1, GROUPS) / GROUPS)
        group = np.searchsorted(cuts, untreated, side="right")
        for place, arm in enumerate(ARMS):
            for number in range(GROUPS):
                here = ~fitted & (arms == arm) & (group == number)
                own = chances[here, place, position]
                low, high = band(own)
                seen = int(patients.loc[here, outcome].sum())
                rows.append((outcome, arm, number + 1, len(own), seen, own.sum(), low, high, low <= seen <= high))
    names = ["outcome", "arm", "group", "patients", "observed", "predicted", "low", "high", "inside"]
    return pd.DataFrame(rows, columns=names)


def chances_of(patients: pd.DataFrame, half: NDArray[np.bool_]) -> FloatArray:
    """P(outcome | patient, treatment) of everybody, by hazards that are fitted to a half: (n, treatments, outcomes)."""
    levels = indicators(patients)
    arms = [np.array([drug in drugs for drug in ARMS["a3"]]) for drugs in ARMS.values()]
    by_arm = [design_of(levels, np.broadcast_to(arm, (len(levels), len(arm)))) for arm in arms]
    design, chances = design_of(levels, given(patients)), np.empty((len(patients), len(ARMS), len(OUTCOMES)))
    for position, outcome in enumerate(OUTCOMES):
        happened = patients.loc[half, outcome].to_numpy(dtype=np.float64)
        estimates = fit(design[half], happened, precision_of(design)).estimates
        for place, each in enumerate(by_arm):
            chances[:, place, position] = -np.expm1(-np.exp(each @ estimates))
    return chances


def other_halves(patients: pd.DataFrame, seeds: Sequence[int]) -> list[int]:
    """How many groups are within their bands for other random halves, fitted and compared alike."""
    halves = (fitted_half(patients, seed) for seed in seeds)
    return [int(cells_of(patients, half, chances_of(patients, half))["inside"].sum()) for half in halves]


def calibration(scenario: str = "stroke") -> Calibration:
    """Of a scenario file, on the patients beside this script."""
    patients = read_patients()
    half = fitted_half(patients)
    return Calibration(load_scenario(scenario), patients, half, chances_of(patients, half))


def given_by(patients: pd.DataFrame, others: pd.DataFrame, policies: Sequence[str]) -> dict[str, FloatArray]:
    """P(treatment) of some patients under policies of the scenario that is fitted to others, (n, 4) by policy.

    The treatments are policies, too: each is given to all.
    """
    study, scenario = load_study("stroke"), Fitted.to(others).scenario()
    assert isinstance(study, ScenarioStudy)
    problem = build_problem(replace(study, scenario=scenario, utility=default_utility(scenario)))
    records = scenario.space.encode(patients)
    made = {name: study.policy(name, EPSILON).probabilities(problem)[records] for name in policies}
    return {**made, **{arm: np.eye(len(ARMS))[np.full(len(patients), at)] for at, arm in enumerate(ARMS)}}


def held_out(
    patients: pd.DataFrame, half: NDArray[np.bool_], policies: Sequence[str] = tuple(POLICIES)
) -> pd.DataFrame:
    """What policies were worth at six months, in patients who had no part in making them.

    Each half counts under the policies of the scenario that is fitted to the other. Every arm was given with
    probability 1/4; a value is the mean outcome weighted by what the policy gives the patient's own arm
    (self-normalised inverse propensities; Swaminathan & Joachims 2015), and a patient's part of its error is that
    weight times the distance of the outcome from the value, over the mean weight.

    Columns: policy, value, low, high (alive and independent, a share, with its 95 % interval), difference,
    difference_low, difference_high (to one treatment for all; NaN for itself).
    """
    known = (patients["outcome_6m"].notna()).to_numpy()
    success = patients["outcome_6m"].isin(INDEPENDENT).to_numpy(dtype=np.float64)[known]
    arms = patients["arm"].map(list(ARMS).index).to_numpy()
    weights = {name: np.empty(len(patients)) for name in (*policies, *ARMS)}
    for here in (half, ~half):
        for name, chances in given_by(patients[here], patients[~here], policies).items():
            weights[name][here] = chances[np.arange(here.sum()), arms[here]] * len(ARMS)
    values = {name: float(np.average(success, weights=weight[known])) for name, weight in weights.items()}
    parts = {name: weight[known] * (success - values[name]) / weight[known].mean() for name, weight in weights.items()}
    rows = []
    for name, value in values.items():
        reference = "best-fixed"
        difference, apart = value - values[reference], parts[name] - parts[reference]
        errors = [Z * float(each.std() / np.sqrt(len(success))) for each in (parts[name], apart)]
        of_difference = [difference, difference - errors[1], difference + errors[1]]
        numbers = of_difference if name != reference else [np.nan] * len(of_difference)
        rows.append((name, value, value - errors[0], value + errors[0], *numbers))
    columns = ["policy", "value", "low", "high", "difference", "difference_low", "difference_high"]
    return pd.DataFrame(rows, columns=columns)


def band(chances: FloatArray) -> tuple[int, int]:
    """Counts of independent events with these chances: each end has at most 2.5 % beyond it."""
    below = np.cumsum(reduce(np.convolve, [[1 - chance, chance] for chance in chances]))
    low, high = np.searchsorted(below, [TAIL, 1 - TAIL])
    return int(low), int(high)


def departures(patients: pd.DataFrame, half: FloatArray, outcomes: Sequence[str] = OUTCOMES) -> pd.DataFrame:
    """Whether the ratio of a treatment depends on a feature: a likelihood ratio test for each, in a half.

    Columns: outcome, drug, feature, p. In each test the ratio of one drug may differ between the levels of one feature.
    """
    treated = given(patients)[half]
    design = design_of(indicators(patients)[half], treated)
    precision, rows = precision_of(design), []
    for outcome in outcomes:
        happened = patients.loc[half, outcome].to_numpy(dtype=np.float64)
        without = fit(design, happened, precision)
        for place, drug in enumerate(ARMS["a3"]):
            for feature in FEATURES:
                own = indicators(patients, [feature])[half][:, 1:] * treated[:, [place]]
                wide = np.column_stack([design, own])
                # A prior so wide that it only keeps levels without events from an infinite ratio.
                found = fit(wide, happened, np.append(precision, np.full(own.shape[1], 0.1)))
                gain = 2 * max(0.0, found.log_likelihood - without.log_likelihood)
                rows.append((outcome, drug, feature, float(chi2.sf(gain, len(levels_of(feature)) - 1))))
    return pd.DataFrame(rows, columns=["outcome", "drug", "feature", "p"])


@dataclass(frozen=True)
class Cells:
    """What was seen in each cell of an outcome against what was predicted, with the band of the prediction."""

    outcome: str

    def draw(self, axes: Axes, table: pd.DataFrame) -> None:
        """Draw the outcome's rows on the axes, in per cent."""
        rows = table[table["outcome"] == self.outcome]
        share = 100 / rows["patients"]
        predicted, low, high = (rows[column] * share for column in ("predicted", "low", "high"))
        most = 1.05 * float(max(high.max(), (rows["observed"] * share).max()))
        axes.plot([0, most], [0, most], color="#8A8A8A", linewidth=1)
        axes.vlines(predicted, low, high, color="#8A8A8A", alpha=0.3, linewidth=5, label="95 % band")
        for (arm, own), (colour, marker, _) in zip(rows.groupby("arm"), LOOKS, strict=False):
            observed = own["observed"] * share[own.index]
            look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": "none", "zorder": 3}
            axes.plot(predicted[own.index], observed, label=f"{arm} ({ARM_TITLES[str(arm)]})", **look)
        axes.set_xlim(0, 1.1 * float(predicted.max()))
        axes.set_ylim(-0.03 * most, most)
        axes.set_xlabel("predicted, %")
        axes.set_ylabel("observed, %")
        axes.set_title(TITLES[self.outcome].capitalize(), loc="left", fontweight="bold")


def drawing(cells: pd.DataFrame) -> Described:
    """A panel for each outcome."""
    description = (
        "Patients who were not fitted: events within 14 days, observed against predicted, a panel for each outcome. A "
        f"point is an arm's patients in one fifth of the untreated risk of that outcome, of {len(cells)} in all; grey: "
        "where 95 % of such groups lie if the scenario is right. On the line both are the same."
    )
    return Described(FIGURE, description, cells, tuple(map(Cells, OUTCOMES)), height=7.5, across=3)


def cell_rows(cells: pd.DataFrame) -> Iterator[SourceRow]:
    """Every cell as a figure of the trial, beside the scenario's."""
    for cell in cells.itertuples():
        words = f"{TITLES[cell.outcome]}, {cell.arm} ({ARM_TITLES[cell.arm]}), risk {cell.group} of {GROUPS}"
        where = f"{cell.patients} patients"
        yield SourceRow.of(words, where, str(cell.observed), SingleRun(float(cell.predicted), (cell.low, cell.high)))


def in_both_halves(found: Calibration) -> pd.DataFrame:
    """The tests for departures. Columns: outcome, drug, feature, fitted half, other half."""
    seen = departures(found.patients, found.fitted).rename(columns={"p": "fitted half"})
    return seen.assign(**{"other half": departures(found.patients, ~found.fitted)["p"]})


def findings(
    found: Calibration, seen: pd.DataFrame, others: Sequence[int], worth: pd.DataFrame, worth_elsewhere: Sequence[float]
) -> SourceFindings:
    """All that is to be said.

    Parameters
    ----------
    found : Calibration
    seen : DataFrame
        From `in_both_halves`.
    others : sequence of int
        From `other_halves`.
    worth : DataFrame
        From `held_out`.
    worth_elsewhere : sequence of float
        The difference of each's best to one treatment for all, of other halves.
    """
    cells = found.cells
    both = int((seen[["fitted half", "other half"]].max(axis=1) < LEVEL).sum())
    least = float(seen["fitted half"].min())
    one, two = found.apart(1), found.apart(2)
    shares = cells[["predicted", "observed"]].mul(100 / cells["patients"], axis=0)
    each = worth.set_index("policy").loc["greedy"] * 100
    return SourceFindings(
        headline=Headline(
            f"{cells['inside'].sum()} of {len(cells)} groups that were not fitted have as many events as predicted",
            f"{cells['inside'].sum()} of {len(cells)}",
            "groups of patients have a number of events within the 95 % band of the prediction",
        ),
        card=Curves(
            {"": list(zip(shares["predicted"], shares["observed"], strict=True))},
            x="predicted, %",
            y="observed, % of a group with an event",
            log="",
            dots=frozenset({""}),
            diagonal=True,
        ),
        lead=(
            f"Of {len(cells)} groups of patients to whom nothing was fitted, {cells['inside'].sum()} have a number of "
            "events within the 95 % band that the scenario predicts for them. The groups are the arms by fifths of "
            f"risk, for each of {len(OUTCOMES)} outcomes; they have {int((~found.fitted).sum()):,} patients in all.",
            f"Which half is fitted matters a little: with {len(others)} other random halves, fitted and compared "
            f"alike, between {min(others)} and {max(others)} groups are within their bands, {np.mean(others):.0f} on "
            "average.",
            "So risks are calibrated: how often something happens under a treatment is known of groups of patients. "
            "Benefits cannot be calibrated: each patient got one treatment, and nobody shows what another would have "
            "done. What can be seen of a policy is its value in patients who had no part in making it: of these, alive "
            f"and independent after six months were {each['value']:.1f} of 100 under each's best, "
            f"{each['difference']:+.1f} ({each['difference_low']:+.1f} to {each['difference_high']:+.1f}) against one "
            f"treatment for all; with {len(worth_elsewhere)} other pairs of halves the difference is "
            f"{100 * min(worth_elsewhere):+.1f} to {100 * max(worth_elsewhere):+.1f}.",
            "Whether the ratio of a treatment depends on a feature was asked for each outcome, treatment and feature: "
            f"{len(seen)} tests in each half. The smallest p in the fitted half is {least:.2g}; by chance alone the "
            f"smallest of so many is no larger with probability {1 - (1 - least) ** len(seen):.2g}. "
            f"{both or 'None'} of the tests is below {LEVEL:g} in both halves: in the scenario no ratio depends on a "
            "feature.",
            f"The prior is within {one.max():.2g} of the patients for each feature, and within {two.max():.2g} for "
            "each pair of features (total variation).",
        ),
        rows=tuple(cell_rows(cells)),
        sections=(
            Section("Predicted and observed", drawing=drawing(cells)),
            table_section(
                "By arm",
                f"Patients with an event, per cent: all {len(found.patients):,} of the trial, with exact 95 % "
                "intervals, and the scenario, which is fitted to the same patients, over its own prior.",
                in_words(found.arms),
            ),
            table_section(
                "Worth at six months",
                "Patients alive and independent after six months, of 100, with 95 % intervals: those of each half "
                "under policies of the scenario that is fitted to the other (self-normalised inverse propensities). "
                "Differences are to one treatment for all, which may be another in each half. The scenario counts what "
                "happens within 14 days, and weighs it by what it costs at six months.",
                worth_in_words(worth),
            ),
            table_section(
                "Ratios that may depend on the patient",
                f"Likelihood ratio tests of one treatment's ratio between the levels of one feature: the {N_SHOWN} "
                f"smallest p of {len(seen)} in the fitted half, and the same tests in the other.",
                smallest(seen),
            ),
            table_section(
                "The prior",
                f"Total variation between the prior and all patients: the {N_SHOWN} pairs of features with the most.",
                pd.DataFrame({"features": two.index.str.replace("_", " "), "apart": two.map("{:.3f}".format)}).head(
                    N_SHOWN
                ),
            ),
        ),
        assumptions=(
            f"The scenario is fitted to all patients; here each arm was halved at random (seed {SEED}), and what is "
            "fitted to one half, likewise, is compared with the other. For policies all is fitted to each half alone, "
            "the prior and the weights, too; but which deficits are features was chosen once, in this half.",
            "150 patients whose state at six months is unknown are left out of its values.",
            "A band is that of the number of independent events, each with the probability that the scenario gives the "
            "patient; it has no allowance for the errors of what was fitted.",
            "Early heparin: the trial found no clinical advantage of it at six months (Lancet 1997; 349: 1569-1581: "
            "62.9 % dead or dependent with and without it), and a Cochrane review of such trials no fewer dead or "
            "dependent (odds ratio 0.99, 0.93 to 1.04; Sandercock, Counsell & Kane 2015, doi "
            "10.1002/14651858.CD000024.pub4).",
            "Care of the 1990s: a model of a trial, not medical advice.",
        ),
        related=RELATED,
    )


def worth_in_words(worth: pd.DataFrame) -> pd.DataFrame:
    """The values at six months, of 100."""

    def text(of: str, style: str) -> list[str]:
        rows = 100 * worth[[of, *(f"{of}_{end}".removeprefix("value_") for end in ("low", "high"))]]
        return [
            "–" if np.isnan(at) else f"{at:{style}} ({low:{style}} to {high:{style}})"
            for at, low, high in rows.to_numpy()
        ]

    titles = {**POLICIES, **{arm: f"{title} for all" for arm, title in ARM_TITLES.items()}}
    return pd.DataFrame(
        {
            "policy": worth["policy"].map(titles),
            "alive and independent": text("value", ".1f"),
            "against one for all": text("difference", "+.1f"),
        }
    )


def in_words(arms: pd.DataFrame) -> pd.DataFrame:
    """The events by arm, in per cent."""
    percent = {
        name: arms[name].map("{:.2%}".format).str.replace("%", "") for name in ("low", "high", "observed", "expected")
    }
    return pd.DataFrame(
        {
            "outcome": arms["outcome"].map(TITLES),
            "arm": [f"{arm} ({ARM_TITLES[arm]})" for arm in arms["arm"]],
            "trial": percent["observed"],
            "95 % interval": percent["low"] + " to " + percent["high"],
            "scenario": percent["expected"],
        }
    )


def smallest(seen: pd.DataFrame) -> pd.DataFrame:
    """The departures with the smallest p, in words."""
    chosen = seen.nsmallest(N_SHOWN, "fitted half")
    return pd.DataFrame(
        {
            "outcome": chosen["outcome"].map(TITLES),
            "treatment": chosen["drug"].map(ARM_TITLES),
            "feature": chosen["feature"].str.replace("_", " "),
            **{f"p, {half}": chosen[half].map("{:.2g}".format) for half in ("fitted half", "other half")},
        }
    )


def find(progress: Progress) -> SourceFindings:
    """What the scenario's own patients say about it."""
    progress.expect(3)
    found = calibration()
    seen = in_both_halves(found)
    progress.advance()
    others = other_halves(found.patients, OTHERS)
    progress.advance()
    worth, cheap = held_out(found.patients, found.fitted), ("best-fixed", "greedy")
    elsewhere = [held_out(found.patients, fitted_half(found.patients, seed), cheap) for seed in OTHERS]
    progress.advance()
    return findings(found, seen, others, worth, [float(each["difference"].iloc[1]) for each in elsewhere])


def ask(seed: int = SEED) -> Asked:
    """The question of this script."""
    return Asked(
        script="examples/stroke_calibration.py",
        title="Does a scenario that is fitted to half of a trial predict the other half?",
        source="The International Stroke Trial (Sandercock, Niewada & Czlonkowska 2011, version 2, University of "
        "Edinburgh, doi 10.7488/ds/104, ODC-By) and the scenario stroke, made of its patients.",
        find=find,
        seed=seed,
    )


if __name__ == "__main__":
    sys.exit(run(ask))
