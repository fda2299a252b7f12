"""Does the study `warfarin` say what happens to patients whose right dose is known?

The consortium's patients needed a low, a middle or a high dose of warfarin, and which one is known. This lesson makes
policies on nine folds of the patients and scores them on the tenth, beside what the cohort of the study says of them.
It asks how many get the right dose band, who pays for privacy, and what a dose reveals of a genotype.

`python examples/experiments/warfarin_known_doses.py` writes reports/warfarin-known-doses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom

import policysim as ps
from examples.experiments.warfarin_cohort import EARNS, beside_iwpc, earned
from examples.experiments.warfarin_patients import (
    DOSES,
    FEATURES,
    FOLDS,
    GENOTYPES,
    FloatArray,
    IntArray,
    agreement,
    cohort_of,
    folds,
    held_out,
    iwpc_dose,
    kinds,
    known,
    read_patients,
)
from examples.reporting import (
    REPORTS,
    Figures,
    Row,
    Run,
    compare_claim,
    compare_run,
    comparison_in_markdown,
    in_markdown,
    new_figure,
    write_report,
)
from policysim.decision.prices import price_list

# 1. The data are the consortium's patients (warfarin_patients.py). What is asked of them:
WEIGHTS = {"overdosed": 1.0, "underdosed": 1.0}
EPSILON, EPSILONS = 1.0, (0.5, 1.0, 2.0, 3.0, 5.0)
ONE, PUBLIC, EACH = "one dose for all", "age and weight alone", "genotypes, no privacy"
PRIVATE = "genotypes hidden, ε = {:g}"
GENE, RARE = "vkorc1", "A/A"
THOUSAND = 1000
PUBLISHED = 10_000
# Bins of a calibration curve, of equally many patients.
BINS = 10
FIGURE = "calibration"
# IWPC 2009, table 3, derivation and validation cohorts together: how many of 100 its algorithm doses within 20 %, by
# the dose that they need.
IWPC_WITHIN = ("35.0", "55.9", "32.8")
# Who is reported beside all; race is never a feature of the model.
GROUPS: Mapping[str, str] = {"vkorc1": "VKORC1", "age": "age", "race": "race (not used)"}


# 2. The computation.
def problem_of(cohort: pd.DataFrame) -> ps.DecisionProblem:
    """The study's problem: both genotypes are hidden."""
    return ps.problem_from_frame(
        cohort, features=FEATURES, treatment="dose", patients="patients", weights=WEIGHTS, sensitive=GENOTYPES
    )


def policies() -> dict[str, Any]:
    """The policies that are compared, by what is said of them."""
    best = {PRIVATE.format(epsilon): ps.make_policy("optimal", epsilon=epsilon) for epsilon in EPSILONS}
    return {
        ONE: ps.make_policy("best-fixed"),
        PUBLIC: ps.make_policy("optimal", epsilon=0.0),
        **best,
        EACH: ps.make_policy("greedy"),
    }


def tables_of(problem: ps.DecisionProblem) -> dict[str, FloatArray]:
    """p(dose | kind) of each policy, (kinds, doses)."""
    return {name: policy.probabilities(problem) for name, policy in policies().items()}


@dataclass(frozen=True)
class KnownDoses:
    """The patients, what the cohort says of policies, and what the tenth folds do.

    Attributes
    ----------
    patients : DataFrame
    problem : DecisionProblem
        Of all of them.
    tables : mapping of str to array, (kinds, doses)
        Each policy, made on all patients.
    received : mapping of str to array, (n, doses)
        What each patient gets of a policy that was made on the nine other folds.
    """

    patients: pd.DataFrame
    problem: ps.DecisionProblem
    tables: Mapping[str, FloatArray]
    received: Mapping[str, FloatArray]

    @property
    def needed(self) -> IntArray:
        """The right band of each patient."""
        return np.asarray(self.patients["dose"])

    def right(self, name: str) -> FloatArray:
        """P(right band) of each patient, held out."""
        return self.received[name][np.arange(len(self.patients)), self.needed]

    def over(self, name: str) -> FloatArray:
        """P(a band above the right one) of each patient, held out."""
        return np.asarray((self.received[name] * (np.arange(len(DOSES)) > self.needed[:, None])).sum(axis=1))


def known_doses() -> KnownDoses:
    """Make each policy on nine folds, and give it to the tenth."""
    patients = known(read_patients())
    places = pd.MultiIndex.from_frame(kinds()).get_indexer(pd.MultiIndex.from_frame(patients[list(FEATURES)]))
    fold, received = folds(len(patients)), {name: np.empty((len(patients), len(DOSES))) for name in policies()}
    for number in range(FOLDS):
        apart = fold == number
        for name, table in tables_of(problem_of(cohort_of(patients[~apart]))).items():
            received[name][apart] = table[places[apart]]
    problem = problem_of(cohort_of(patients))
    return KnownDoses(patients, problem, tables_of(problem), received)


def right_bands(results: KnownDoses) -> pd.DataFrame:
    """Per 1,000 patients: policy, model, right, low, high (right bands by the cohort, and held out), over_model, over.

    The last two are overdosed beyond one dose for all.
    """
    n, rows = len(results.patients), []
    overdosed = results.problem.outcomes["overdosed"]
    for name, table in results.tables.items():
        right = results.right(name)
        half = 1.96 * right.std() / n**0.5
        more = results.over(name).mean() - results.over(ONE).mean()
        of_model = results.problem.prior @ ((table - results.tables[ONE]) * overdosed).sum(axis=1)
        ends = (
            1 + results.problem.value(table),
            right.mean(),
            right.mean() - half,
            right.mean() + half,
            of_model,
            more,
        )
        rows.append((name, *(THOUSAND * end for end in ends)))
    return pd.DataFrame(rows, columns=["policy", "model", "right", "low", "high", "over_model", "over"])


def guesses(results: KnownDoses) -> pd.DataFrame:
    """What a dose reveals of VKORC1, of 100: policy, right (the best guess from age, weight and dose), low, high.

    The last two are the least and the largest belief in A/A, of somebody who does not know age and weight.
    """
    codes, levels = results.problem.records.groups(GENE)
    public = results.problem.records.groups("age")[0] * 10 + results.problem.records.groups("weight")[0]
    prior, rows = results.problem.prior, []
    for name, table in results.tables.items():
        joint = prior[:, None] * table
        sums = np.zeros((public.max() + 1, len(levels), len(DOSES)))
        np.add.at(sums, (public, codes), joint)
        after = np.array([joint[codes == levels.index(RARE), dose].sum() for dose in range(len(DOSES))])
        total = joint.sum(axis=0)
        belief = after[total > 1e-12] / total[total > 1e-12]
        rows.append((name, 100 * sums.max(axis=1).sum(), 100 * belief.min(), 100 * belief.max()))
    return pd.DataFrame(rows, columns=["policy", "right", "low", "high"])


def groups(results: KnownDoses) -> pd.DataFrame:
    """Right bands per 1,000 of each group, held out: group, patients, and each policy that is looked at."""
    shown, rows = (ONE, PUBLIC, PRIVATE.format(EPSILON), EACH), []
    for column, title in GROUPS.items():
        for level, members in results.patients.groupby(column):
            means = (THOUSAND * results.right(name)[members.index].mean() for name in shown)
            rows.append((f"{title} {level}", len(members), *means))
    return pd.DataFrame(rows, columns=["group", "patients", *shown])


def calibration(needed: IntArray, chances: FloatArray) -> pd.DataFrame:
    """Per cent, held out: dose, bin, patients, expected, observed, low, high (a 95 % band of what is expected)."""
    rows = []
    for dose, name in enumerate(DOSES):
        order = np.argsort(chances[:, dose], kind="stable")
        for number, members in enumerate(np.array_split(order, BINS), 1):
            expected, n = chances[members, dose].mean(), len(members)
            low, high = binom.ppf([0.025, 0.975], n, expected) / n
            ends = (expected, (needed[members] == dose).mean(), low, high)
            rows.append((name, number, n, *(100 * end for end in ends)))
    return pd.DataFrame(rows, columns=["dose", "bin", "patients", "expected", "observed", "low", "high"])


# 3. The tables.
def compare(results: KnownDoses, bands: pd.DataFrame) -> list[Row]:
    """IWPC's share within 20 % of the right dose, of these patients, beside the one that it published; and a claim."""
    patients, rows = results.patients, []
    mg, right = iwpc_dose(patients), patients["dose_mg_per_week"].to_numpy()
    for dose, printed in enumerate(IWPC_WITHIN):
        members = np.isfinite(mg) & (patients["dose"] == dose).to_numpy()
        near, n = (np.abs(mg - right) <= 0.2 * right)[members].mean(), int(members.sum())
        low, high = 100 * binom.ppf([0.025, 0.975], n, near) / n
        where = f"IWPC 2009, table 3; here {n:,} patients"
        words = f"within 20 % of the right dose by IWPC's algorithm, of 100 who need a {DOSES[dose]}"
        rows.append(compare_run(words, where, printed, Run(100 * near, low, high)))
    right_of = bands.set_index("policy")["right"]
    private = right_of[PRIVATE.format(EPSILON)]
    claim = compare_claim(
        "privacy at a budget that stops guesses of genotypes costs patients",
        "Fredrikson et al. 2014, abstract",
        "patients would be exposed to increased risk",
        f"at ε = {EPSILON:g}: {right_of[EACH] - private:.0f} of {THOUSAND:,} fewer right bands than without privacy, "
        f"{private - right_of[ONE]:.0f} more than with one dose for all",
        holds=None,
        why="Another mechanism, another notion of who is protected, another measure of harm.",
    )
    return [*rows, claim]


def texts(table: pd.DataFrame, **formats: str) -> pd.DataFrame:
    """A table of texts: each number by the format of its column, or whole."""
    shown = {name: table[name].map(formats.get(name, "{:,.0f}").format) for name in table.select_dtypes("number")}
    return table.assign(**shown).replace("nan", "–")


def interval(table: pd.DataFrame) -> pd.Series:
    """Low to high, whole."""
    return table["low"].map("{:.0f}".format) + " to " + table["high"].map("{:.0f}".format)


def bands_table(bands: pd.DataFrame) -> pd.DataFrame:
    """Right bands, and how many are overdosed beyond one dose for all."""
    return pd.DataFrame(
        {
            "policy": bands["policy"],
            "right band, cohort": bands["model"].map("{:.0f}".format),
            "held out": bands["right"].map("{:.0f}".format),
            "95 % interval": interval(bands),
            "overdosed, cohort": bands["over_model"].map("{:+.0f}".format),
            "overdosed, held out": bands["over"].map("{:+.0f}".format),
        }
    )


def guesses_table(guessed: pd.DataFrame) -> pd.DataFrame:
    """What a dose reveals of VKORC1."""
    right = guessed["right"].map("{:.1f}".format)
    return pd.DataFrame({"policy": guessed["policy"], "right guess": right, f"belief in {RARE}": interval(guessed)})


def prices_table(results: KnownDoses) -> pd.DataFrame:
    """What hiding each feature costs at best."""
    prices = price_list(results.problem, EPSILON)
    lost = (THOUSAND * prices["loss"]).map("{:.0f}".format)
    benefit = prices["benefit_kept"].map("{:.0%}".format)
    return pd.DataFrame({"hidden": prices["hides"], "right bands lost": lost, "benefit kept": benefit})


def ways_table(results: KnownDoses) -> pd.DataFrame:
    """What is kept where the dose is published, by the way to publish it."""
    ways = ps.ways_to_publish(results.problem, epsilons=[EPSILON], patients=PUBLISHED)
    return pd.DataFrame(
        {
            "way": ways["way"],
            "benefit kept": ways["benefit_kept"].map("{:.0%}".format),
            "true doses": ways["true_share"].map("{:.0%}".format).replace("nan%", "–"),
            "error of a count": ways["error_of_a_count"].map("{:.0f}".format).replace("nan", "–"),
        }
    )


# 4. The figure.
def draw(table: pd.DataFrame) -> Figures:
    """Patients who needed a band against how many were expected to, a panel for each band."""
    figure, panels = new_figure(*(dose.capitalize() for dose in DOSES), across=3, height=3.2)
    for axes, dose, colour, marker in zip(panels, DOSES, ("#C84F00", "#0072B2", "#009E73"), "Do^", strict=True):
        rows = table[table["dose"] == dose]
        axes.plot([0, 100], [0, 100], color="#8A8A8A", linewidth=1)
        axes.vlines(rows["expected"], rows["low"], rows["high"], color="#8A8A8A", alpha=0.4, linewidth=4)
        axes.plot(rows["expected"], rows["observed"], marker, color=colour)
        axes.set(xlabel="expected, %", ylabel="needed it, %")
    return {FIGURE: (figure, table)}


# 5. The report.
def readme(results: KnownDoses, bands: pd.DataFrame, chances: FloatArray, rows: list[Row]) -> str:
    """What was results, in words, beside its numbers."""
    patients, everybody, private = results.patients, read_patients(), PRIVATE.format(EPSILON)
    right, guessed = bands.set_index("policy")["right"], guesses(results)
    guess = guessed.set_index("policy")["right"]
    apart = (bands["model"] - bands["right"]).abs().max()
    by_group = groups(results)
    genes = by_group.head(patients[GENE].nunique())
    paid = ", ".join(
        f"{name} {more:+.0f}" for name, more in zip(genes["group"], genes[private] - genes[ONE], strict=True)
    )
    iwpc = texts(beside_iwpc(patients, chances), right="{:.1f}", **dict.fromkeys((*DOSES, "within 20 %"), "{:.1f}"))
    earns = texts(earned(patients), right="{:.1f}", more="{:+.2f}", se="{:.2f}", loss="{:.3f}")
    left_out = everybody.loc[everybody[list(FEATURES)].isna().any(axis=1), "dose"]
    measured = len(patients) - int(patients["filled"].sum())
    return f"""# Who gets the right dose of warfarin if it must not reveal two genotypes, by doses that are known?

- Of {THOUSAND:,} patients, {right[ONE]:.0f} get the right band with one dose for all, {right[PUBLIC]:.0f} by age and
  weight alone, {right[private]:.0f} with both genotypes hidden at ε = {EPSILON:g}, and {right[EACH]:.0f} with
  genotypes and no privacy: policies made on {FOLDS - 1} of {FOLDS} folds, scored on the other by the known dose. The
  cohort says the same of each to within {apart:.0f} of {THOUSAND:,}.
- Without a dose, the best guess of VKORC1 from age and weight is right for {guess[ONE]:.0f} of 100; after the dose
  that is best for each, for {guess[EACH]:.0f}; after a private one at ε = {EPSILON:g}, for {guess[private]:.0f}.
- More or fewer right bands, held out, than with one dose for all, of {THOUSAND:,} of them: {paid}.
- Fredrikson et al. (2014, USENIX Security 23:17-32) ask the same of models of warfarin doses: a published dosing
  model lets others predict a patient's genetic markers, differential privacy prevents this at a carefully selected
  budget, and patients of dosing models which are private enough are then exposed to more strokes, bleeding and
  deaths. What differs: there the model is noised, and the people are protected whose data it was fitted to; here the
  model is public, and the patient is protected who is treated. There harm is simulated; here it is a right or wrong
  band, exactly. We read their abstract only, and take no figure from them.

## Figures of the sources beside ours

{comparison_in_markdown(rows)}

## Who gets the right band

{in_markdown(bands_table(bands))}

Per {THOUSAND:,} patients. Held out: made on {FOLDS - 1} folds, scored on the other by the known dose; overdosed:
beyond one dose for all, which is the middle one.

## What the dose reveals of VKORC1

{in_markdown(guesses_table(guessed))}

Of 100, by the cohort: how often the best guess of VKORC1 is right for somebody who knows age, weight and the dose;
and the least and largest belief in {RARE} after a dose, of somebody who knows the dose only.

## Who gains and who loses

{in_markdown(texts(by_group))}

Right bands per {THOUSAND:,} of each group, held out. Race is no feature: no policy sees it.

## What hiding each feature costs

{in_markdown(prices_table(results))}

At ε = {EPSILON:g}, all else public: right bands that the best mechanism loses per {THOUSAND:,}, against the best dose
for each.

## Giving and publishing are two decisions

{in_markdown(ways_table(results))}

At ε = {EPSILON:g}: where others see only what is published, each may get the best dose. The error is that of a count
among {PUBLISHED:,} patients.

## Expected and needed

![Patients who needed a band against how many were expected to, by a model that was fitted to the other folds: a panel
for each band, a point for each tenth of the patients. Grey: where 95 % of such groups lie if the model is
right.](figures/{FIGURE}.svg)

## What each feature earns

{in_markdown(earns)}

Right bands of 100, held out; more: against genotypes, age and weight, with its standard error. A feature is used if
it makes {EARNS:g} more of 100 right: race and gender make none, amiodarone and drugs that induce enzymes less than
that, and they are not recorded for a quarter of the patients and more.

## Beside the published algorithm

{in_markdown(iwpc)}

Of 100 patients whose height is known: right bands, also by the band that they need; within 20 %: of the right dose.
IWPC fitted its algorithm to 4,043 patients of these data.

## Genotypes that were not measured

{in_markdown(texts(agreement(), agree="{:.1%}"))}

VKORC1 at −1639 was measured for {measured:,} of the {len(patients):,} patients; for the others a site in linkage says
it. Agree: of patients with both.

## What is assumed

{len(patients):,} of the {len(everybody):,} patients whose dose is known: those with VKORC1, CYP2C9, age and weight.
{100 * patients["dose"].ne(1).mean():.0f} of 100 who stay do not need the middle dose, and
{100 * left_out.ne(1).mean():.0f} of 100 who are left out. The model is multinomial and logistic with an indicator for
each level, and a weak ridge. Alleles of CYP2C9 rarer than *3 count as *3 (17 patients of the data). The coefficients
of IWPC's algorithm (N Engl J Med 2009; 360:753-764, its supplementary appendix) were read in public code that names
it, and its shares in table 3 of the paper. That every wrong band costs the same is the reward of contextual bandits
on these data: Bastani and Bayati (2020, Operations Research 68:276-294) test theirs on warfarin dosing; we read their
abstract, and the reward, 0 for the right band and −1 for a wrong one, in public code that implements it. A model, not
medical advice.

Data: The International Warfarin Pharmacogenetics Consortium, PharmGKB, CC BY-SA 4.0.
`python examples/experiments/warfarin_known_doses.py` writes this report.
"""


def main(folder: Path = REPORTS / "warfarin-known-doses") -> None:
    """Write the report."""
    results = known_doses()
    bands, chances = right_bands(results), held_out(results.patients, FEATURES)
    rows = compare(results, bands)
    write_report(folder, readme(results, bands, chances, rows), rows, draw(calibration(results.needed, chances)))


if __name__ == "__main__":
    main()
