"""Does a scenario that is fitted to half of a trial predict the other half?

The scenario `stroke` is fitted to all patients of the International Stroke Trial. This lesson fits halves of them in
the same way, and asks three things: are the events of the half that was kept out as many as predicted, for each arm and
risk group? Does the effect of a treatment depend on the patient? And how were patients after six months who had no part
in making a policy?

`python examples/experiments/stroke_calibration.py` writes reports/stroke-calibration, in a few minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import beta, chi2

import policysim as ps
from envs.cohort import prior
from envs.scenario import Scenario
from envs.treatment_response import ResponseModel
from examples.experiments.stroke_fit import design_of, fit, precision_of
from examples.experiments.stroke_scenario import TITLES as ARM_TITLES
from examples.experiments.stroke_scenario import Fitted
from examples.experiments.stroke_trial import (
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
from examples.reporting import (
    REPORTS,
    Figures,
    Row,
    Run,
    compare_run,
    comparison_in_markdown,
    in_markdown,
    new_figure,
    write_report,
)
from policies.records import encode
from policysim.utility import Utility

# 1. The data are the patients of the trial (stroke_trial.py). What is asked of them:
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
    "greedy": "best for each patient by the scenario",
    "optimal": f"best private choice, ε = {EPSILON:g}",
    "exponential": f"exponential mechanism, ε = {EPSILON:g}",
}
# At six months.
INDEPENDENT = ("recovered", "not recovered")
N_SHOWN = 8  # departures and pairs of features in the report
TITLES = {**{event: title for event, (title, _) in EVENTS.items()}, "death": "death"}


# 2. The computation: calibration, values held out, and departures.
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
        counted = np.bincount(encode(space, self.patients), minlength=space.size) / len(self.patients)
        difference = (prior(self.scenario) - counted).reshape(space.shape)
        distances = {}
        for names in combinations(space.names, features):
            others = tuple(axis for axis, name in enumerate(space.names) if name not in names)
            distances[", ".join(names)] = float(np.abs(difference.sum(axis=others)).sum() / 2)
        return pd.Series(distances).sort_values(ascending=False)


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
        for treatment, arm in enumerate(ARMS):
            for number in range(GROUPS):
                members = ~fitted & (arms == arm) & (group == number)
                predicted = chances[members, treatment, position]
                low, high = band(predicted)
                seen = int(patients.loc[members, outcome].sum())
                ends = (low, high, low <= seen <= high)
                rows.append((outcome, arm, number + 1, len(predicted), seen, predicted.sum(), *ends))
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
        for treatment, columns in enumerate(by_arm):
            chances[:, treatment, position] = -np.expm1(-np.exp(columns @ estimates))
    return chances


def other_halves(patients: pd.DataFrame, seeds: Sequence[int]) -> list[int]:
    """How many groups are within their bands for other random halves, fitted and compared alike."""
    halves = (fitted_half(patients, seed) for seed in seeds)
    return [int(cells_of(patients, half, chances_of(patients, half))["inside"].sum()) for half in halves]


def calibration(scenario: str = "stroke") -> Calibration:
    """Of a scenario file, on the patients beside this script."""
    patients = read_patients()
    half = fitted_half(patients)
    return Calibration(ps.load_scenario(scenario), patients, half, chances_of(patients, half))


def given_by(patients: pd.DataFrame, others: pd.DataFrame, policies: Sequence[str]) -> dict[str, FloatArray]:
    """P(treatment) of some patients under policies of the scenario that is fitted to others, (n, 4) by policy.

    The treatments are policies, too: each is given to all.
    """
    study, scenario = ps.load_study("stroke"), Fitted.to(others).scenario()
    problem = ps.build_problem(replace(study, scenario=scenario, utility=Utility.of(scenario)))
    records = encode(scenario.space, patients)
    tables = {name: study.policy(name, EPSILON).probabilities(problem)[records] for name in policies}
    for treatment, arm in enumerate(ARMS):
        tables[arm] = np.eye(len(ARMS))[np.full(len(patients), treatment)]
    return tables


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
    followed = patients["outcome_6m"].notna().to_numpy()
    success = patients["outcome_6m"].isin(INDEPENDENT).to_numpy(dtype=np.float64)[followed]
    arms = patients["arm"].map(list(ARMS).index).to_numpy()
    weights = {name: np.empty(len(patients)) for name in (*policies, *ARMS)}
    for side in (half, ~half):
        for name, chances in given_by(patients[side], patients[~side], policies).items():
            weights[name][side] = chances[np.arange(side.sum()), arms[side]] * len(ARMS)
    weights = {name: weight[followed] for name, weight in weights.items()}
    values = {name: float(np.average(success, weights=weight)) for name, weight in weights.items()}
    parts = {name: weight * (success - values[name]) / weight.mean() for name, weight in weights.items()}
    rows = []
    for name, value in values.items():
        reference = "best-fixed"
        difference, apart = value - values[reference], parts[name] - parts[reference]
        errors = [Z * float(terms.std() / np.sqrt(len(success))) for terms in (parts[name], apart)]
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
        for number, drug in enumerate(ARMS["a3"]):
            for feature in FEATURES:
                ratios = indicators(patients, [feature])[half][:, 1:] * treated[:, [number]]
                wide = np.column_stack([design, ratios])
                # A prior so wide that it only keeps levels without events from an infinite ratio.
                with_feature = fit(wide, happened, np.append(precision, np.full(ratios.shape[1], 0.1)))
                gain = 2 * max(0.0, with_feature.log_likelihood - without.log_likelihood)
                rows.append((outcome, drug, feature, float(chi2.sf(gain, len(levels_of(feature)) - 1))))
    return pd.DataFrame(rows, columns=["outcome", "drug", "feature", "p"])


def in_both_halves(halves: Calibration) -> pd.DataFrame:
    """The tests for departures. Columns: outcome, drug, feature, fitted half, other half."""
    tests = departures(halves.patients, halves.fitted).rename(columns={"p": "fitted half"})
    return tests.assign(**{"other half": departures(halves.patients, ~halves.fitted)["p"]})


# 3. The tables.
def compare(cells: pd.DataFrame) -> list[Row]:
    """The events of every group, beside those that the scenario predicts."""
    rows = []
    for cell in cells.itertuples():
        words = f"{TITLES[cell.outcome]}, {cell.arm} ({ARM_TITLES[cell.arm]}), risk {cell.group} of {GROUPS}"
        run = Run(cell.predicted, cell.low, cell.high)
        rows.append(compare_run(words, f"{cell.patients} patients", str(cell.observed), run))
    return rows


def arms_table(arms: pd.DataFrame) -> pd.DataFrame:
    """The events by arm, in per cent."""
    percent = {name: (100 * arms[name]).map("{:.2f}".format) for name in ("low", "high", "observed", "expected")}
    return pd.DataFrame(
        {
            "outcome": arms["outcome"].map(TITLES),
            "arm": [f"{arm} ({ARM_TITLES[arm]})" for arm in arms["arm"]],
            "trial": percent["observed"],
            "95 % interval": percent["low"] + " to " + percent["high"],
            "scenario": percent["expected"],
        }
    )


def worth_table(worth: pd.DataFrame) -> pd.DataFrame:
    """The values at six months, of 100."""
    titles = {**POLICIES, **{arm: f"{title} for all" for arm, title in ARM_TITLES.items()}}
    rows = []
    for row in (100 * worth.set_index("policy")).itertuples():
        value = f"{row.value:.1f} ({row.low:.1f} to {row.high:.1f})"
        difference = f"{row.difference:+.1f} ({row.difference_low:+.1f} to {row.difference_high:+.1f})"
        rows.append((titles[row.Index], value, "–" if np.isnan(row.difference) else difference))
    return pd.DataFrame(rows, columns=["policy", "alive and independent", "against one for all"])


def departures_table(tests: pd.DataFrame) -> pd.DataFrame:
    """The departures with the smallest p, in words."""
    smallest = tests.nsmallest(N_SHOWN, "fitted half")
    return pd.DataFrame(
        {
            "outcome": smallest["outcome"].map(TITLES),
            "treatment": smallest["drug"].map(ARM_TITLES),
            "feature": smallest["feature"].str.replace("_", " "),
            **{f"p, {half}": smallest[half].map("{:.2g}".format) for half in ("fitted half", "other half")},
        }
    )


# 4. The figure.
def draw(cells: pd.DataFrame) -> Figures:
    """Observed events against predicted ones, a panel for each outcome."""
    figure, panels = new_figure(*(TITLES[outcome].capitalize() for outcome in OUTCOMES), across=3, height=7.5)
    colours, markers = ("#C84F00", "#0072B2", "#009E73", "#CC79A7"), ("D", "o", "^", "s")
    for axes, outcome in zip(panels, OUTCOMES, strict=True):
        rows = cells[cells["outcome"] == outcome]
        share = 100 / rows["patients"]
        predicted, observed, low, high = (rows[name] * share for name in ("predicted", "observed", "low", "high"))
        most = 1.05 * float(max(high.max(), observed.max()))
        axes.plot([0, most], [0, most], color="#8A8A8A", linewidth=1)
        axes.vlines(predicted, low, high, color="#8A8A8A", alpha=0.3, linewidth=5, label="95 % band")
        for arm, colour, marker in zip(ARMS, colours, markers, strict=True):
            in_arm, label = rows["arm"] == arm, f"{arm} ({ARM_TITLES[arm]})"
            axes.plot(predicted[in_arm], observed[in_arm], marker, color=colour, label=label, zorder=3)
        axes.set(
            xlim=(0, 1.1 * predicted.max()), ylim=(-0.03 * most, most), xlabel="predicted, %", ylabel="observed, %"
        )
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    return {FIGURE: (figure, cells)}


# 5. The report.
def readme(
    halves: Calibration, tests: pd.DataFrame, others: Sequence[int], worth: pd.DataFrame, elsewhere: Sequence[float]
) -> str:
    """What was halves, in words, beside its numbers.

    Parameters
    ----------
    halves : Calibration
    tests : DataFrame
        From `in_both_halves`.
    others : sequence of int
        From `other_halves`.
    worth : DataFrame
        From `held_out`.
    elsewhere : sequence of float
        The difference of the best for each to one treatment for all, of other halves.
    """
    cells = halves.cells
    inside, kept_out = int(cells["inside"].sum()), int((~halves.fitted).sum())
    both = int((tests[["fitted half", "other half"]].max(axis=1) < LEVEL).sum())
    least = float(tests["fitted half"].min())
    one, two = halves.apart(1), halves.apart(2)
    pairs = pd.DataFrame({"features": two.index.str.replace("_", " "), "apart": two.map("{:.3f}".format)})
    best = worth.set_index("policy").loc["greedy"] * 100
    return f"""# Does a scenario that is fitted to half of a trial predict the other half?

- Of {len(cells)} groups of patients to whom nothing was fitted, {inside} have a number of events within the 95 % band
  that the scenario predicts for them. The groups are the arms by fifths of risk, for each of {len(OUTCOMES)}
  outcomes; they have {kept_out:,} patients in all.
- Which half is fitted matters a little: with {len(others)} other random halves, between {min(others)} and {max(others)}
  groups are within their bands, {np.mean(others):.0f} on average.
- So risks are calibrated. Benefits cannot be: each patient got one treatment, and nobody shows what another would
  have done. What can be seen is the value of a policy in patients who had no part in making it: of these, alive and
  independent after six months were {best["value"]:.1f} of 100 under the best for each, {best["difference"]:+.1f}
  ({best["difference_low"]:+.1f} to {best["difference_high"]:+.1f}) against one treatment for all; with
  {len(elsewhere)} other pairs of halves the difference is {100 * min(elsewhere):+.1f} to {100 * max(elsewhere):+.1f}.
- Does the ratio of a treatment depend on a feature? There are {len(tests)} tests in each half. The smallest p in the
  fitted half is {least:.2g}; by chance alone the smallest of so many is no larger with probability
  {1 - (1 - least) ** len(tests):.2g}. {both or "None"} of the tests is below {LEVEL:g} in both halves: in the
  scenario no ratio depends on a feature.
- The prior is within {one.max():.2g} of the patients for each feature, and within {two.max():.2g} for each pair of
  features (total variation).

The same patients in other reports: [stroke](../stroke/report.html) is the scenario, fitted to all: what a private
choice costs, by what happens within 14 days. [ist](../ist/report.html) has the trial by arms, and policies made from
its scores: alive and independent after six months. [ist-14-days](../ist-14-days/report.html) has the same of 14 days:
alive and without another stroke. Here each event is counted by itself.

## Predicted and observed

![Events within 14 days of patients who were not fitted, observed against predicted, a panel for each outcome. A point
is an arm's patients in one fifth of the untreated risk; grey: where 95 % of such groups lie if the scenario is
right.](figures/{FIGURE}.svg)

## By arm

{in_markdown(arms_table(halves.arms))}

Patients with an event, per cent: all {len(halves.patients):,} of the trial, with exact 95 % intervals, and the
scenario, which is fitted to the same patients, over its own prior.

## Worth at six months

{in_markdown(worth_table(worth))}

Patients alive and independent after six months, of 100, with 95 % intervals: those of each half under policies of the
scenario that is fitted to the other (self-normalised inverse propensities). Differences are to one treatment for all,
which may be another in each half. The scenario counts what happens within 14 days, and weighs it by what it costs at
six months.

## Ratios that may depend on the patient

{in_markdown(departures_table(tests))}

Likelihood ratio tests of one treatment's ratio between the levels of one feature: the {N_SHOWN} smallest p of
{len(tests)} in the fitted half, and the same tests in the other.

## The prior

{in_markdown(pairs.head(N_SHOWN))}

Total variation between the prior and all patients: the {N_SHOWN} pairs of features with the most.

## What is assumed

The scenario is fitted to all patients; here each arm was halved at random (seed {SEED}), and what is fitted to one
half is compared with the other. For policies all is fitted to each half alone, the prior and the weights, too; but
which deficits are features was chosen once, in this half. {int(halves.patients["outcome_6m"].isna().sum())} patients
whose state at six months is unknown are left out of its values. A band is that of the number of independent events;
it has no allowance for the errors of what was fitted.

Early heparin: the trial found no clinical advantage of it at six months (Lancet 1997; 349: 1569-1581: 62.9 % dead or
dependent with and without it), and a Cochrane review of such trials no fewer dead or dependent (odds ratio 0.99, 0.93
to 1.04; Sandercock, Counsell & Kane 2015, doi 10.1002/14651858.CD000024.pub4). Care of the 1990s: a model of a trial,
not medical advice.

Data: Sandercock, Niewada & Czlonkowska 2011, version 2, University of Edinburgh, doi 10.7488/ds/104, ODC-By.
`python examples/experiments/stroke_calibration.py` writes this report.

## Every group

{comparison_in_markdown(compare(cells))}

“Source” is what happened in the trial; “ours” is what the scenario predicts, and where 95 % of such groups lie.
"""


def main(folder: Path = REPORTS / "stroke-calibration") -> None:
    """Write the report."""
    halves = calibration()
    tests = in_both_halves(halves)
    others = other_halves(halves.patients, OTHERS)
    worth = held_out(halves.patients, halves.fitted)
    elsewhere = []
    for seed in OTHERS:
        of_half = held_out(halves.patients, fitted_half(halves.patients, seed), ("best-fixed", "greedy"))
        elsewhere.append(float(of_half["difference"].iloc[1]))
    text = readme(halves, tests, others, worth, elsewhere)
    write_report(folder, text, compare(halves.cells), draw(halves.cells))


if __name__ == "__main__":
    main()
