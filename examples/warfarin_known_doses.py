"""Does the study `warfarin` say what happens to patients whose right dose is known?

`python examples/warfarin_known_doses.py` writes reports/warfarin-known-doses: policies made on nine folds of the
patients and scored on the tenth, beside what the cohort says of them; who pays; what a dose tells of a genotype.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from experiment_report import Asked, run, table_section
from matplotlib.axes import Axes
from scipy.stats import binom
from warfarin_cohort import EARNS, beside_iwpc, earned
from warfarin_patients import (
    DOSES,
    FEATURES,
    FOLDS,
    GENOTYPES,
    SEED,
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

import policysim as ps
from policysim.decision.prices import price_list
from policysim.figures.card import Curves
from policysim.figures.described import LOOKS, Described
from policysim.question.answer import Headline
from policysim.question.protocol import Progress
from policysim.sources.engine import Section, SingleRun, SourceFindings, SourceRow

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
# All who are reported beside: never a feature of the model.
GROUPS: Mapping[str, str] = {"vkorc1": "VKORC1", "age": "age", "race": "race (not used)"}


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
    given : mapping of str to array, (n, doses)
        What each patient gets of a policy that was made on the nine other folds.
    """

    patients: pd.DataFrame
    problem: ps.DecisionProblem
    tables: Mapping[str, FloatArray]
    given: Mapping[str, FloatArray]

    @property
    def needed(self) -> IntArray:
        """The right band of each patient."""
        return np.asarray(self.patients["dose"])

    def right(self, name: str) -> FloatArray:
        """P(right band) of each patient, held out."""
        return self.given[name][np.arange(len(self.patients)), self.needed]

    def over(self, name: str) -> FloatArray:
        """P(a band above the right one) of each patient, held out."""
        return np.asarray((self.given[name] * (np.arange(len(DOSES)) > self.needed[:, None])).sum(axis=1))


def known_doses(progress: Progress) -> KnownDoses:
    """Make each policy on nine folds, and give it to the tenth."""
    patients = known(read_patients())
    places = pd.MultiIndex.from_frame(kinds()).get_indexer(pd.MultiIndex.from_frame(patients[list(FEATURES)]))
    fold, given = folds(len(patients)), {name: np.empty((len(patients), len(DOSES))) for name in policies()}
    for number in range(FOLDS):
        apart = fold == number
        for name, table in tables_of(problem_of(cohort_of(patients[~apart]))).items():
            given[name][apart] = table[places[apart]]
        progress.advance()
    problem = problem_of(cohort_of(patients))
    return KnownDoses(patients, problem, tables_of(problem), given)


def right_bands(found: KnownDoses) -> pd.DataFrame:
    """Per 1,000 patients: policy, model, right, low, high (right bands by the cohort, and held out), over_model, over.

    The last two are overdosed beyond one dose for all.
    """
    n, rows = len(found.patients), []
    overdosed = found.problem.outcomes["overdosed"]
    for name, table in found.tables.items():
        right = found.right(name)
        half = 1.96 * right.std() / n**0.5
        more = found.over(name).mean() - found.over(ONE).mean()
        of_model = found.problem.prior @ ((table - found.tables[ONE]) * overdosed).sum(axis=1)
        ends = (1 + found.problem.value(table), right.mean(), right.mean() - half, right.mean() + half, of_model, more)
        rows.append((name, *(THOUSAND * each for each in ends)))
    return pd.DataFrame(rows, columns=["policy", "model", "right", "low", "high", "over_model", "over"])


def guesses(found: KnownDoses) -> pd.DataFrame:
    """What a dose tells of VKORC1: policy, right (the best guess from age, weight and dose), low, high (belief in A/A).

    Of 100. The belief is that of somebody who does not know age and weight either.
    """
    codes, levels = found.problem.records.groups(GENE)
    public = found.problem.records.groups("age")[0] * 10 + found.problem.records.groups("weight")[0]
    prior, rows = found.problem.prior, []
    for name, table in found.tables.items():
        joint = prior[:, None] * table
        sums = np.zeros((public.max() + 1, len(levels), len(DOSES)))
        np.add.at(sums, (public, codes), joint)
        after = np.array([joint[codes == levels.index(RARE), dose].sum() for dose in range(len(DOSES))])
        given = joint.sum(axis=0)
        belief = after[given > 1e-12] / given[given > 1e-12]
        rows.append((name, 100 * sums.max(axis=1).sum(), 100 * belief.min(), 100 * belief.max()))
    return pd.DataFrame(rows, columns=["policy", "right", "low", "high"])


def groups(found: KnownDoses) -> pd.DataFrame:
    """Right bands per 1,000 of each group, held out: group, patients, and each policy that is looked at."""
    shown, rows = (ONE, PUBLIC, PRIVATE.format(EPSILON), EACH), []
    for column, title in GROUPS.items():
        for level, mine in found.patients.groupby(column):
            means = (THOUSAND * found.right(name)[mine.index].mean() for name in shown)
            rows.append((f"{title} {level}", len(mine), *means))
    return pd.DataFrame(rows, columns=["group", "patients", *shown])


def paid_by(found: KnownDoses) -> str:
    """What a private choice changes for each genotype of VKORC1, in words."""
    table = groups(found).head(found.patients[GENE].nunique())
    changes = table[PRIVATE.format(EPSILON)] - table[ONE]
    return ", ".join(f"{group} {change:+.0f}" for group, change in zip(table["group"], changes, strict=True))


@dataclass(frozen=True)
class Calibration:
    """Patients who needed a band against how many the model, fitted to other folds, expected to."""

    dose: int

    def draw(self, axes: Axes, table: pd.DataFrame) -> None:
        """Draw the bins of one band, in per cent."""
        rows = table[table["dose"] == DOSES[self.dose]]
        colour, marker, _ = LOOKS[self.dose]
        axes.plot([0, 100], [0, 100], color="#8A8A8A", linewidth=1)
        axes.vlines(rows["expected"], rows["low"], rows["high"], color="#8A8A8A", alpha=0.4, linewidth=4)
        axes.plot(rows["expected"], rows["observed"], color=colour, marker=marker, linestyle="none")
        axes.set_xlabel("expected, %")
        axes.set_ylabel("needed it, %")
        axes.set_title(DOSES[self.dose].capitalize(), loc="left", fontweight="bold")


def calibration(needed: IntArray, chances: FloatArray) -> pd.DataFrame:
    """Per cent, held out: dose, bin, patients, expected, observed, low, high (a 95 % band of what is expected)."""
    rows = []
    for dose, name in enumerate(DOSES):
        order = np.argsort(chances[:, dose], kind="stable")
        for place, mine in enumerate(np.array_split(order, BINS)):
            expected, n = chances[mine, dose].mean(), len(mine)
            low, high = binom.ppf([0.025, 0.975], n, expected) / n
            ends = (expected, (needed[mine] == dose).mean(), low, high)
            rows.append((name, place + 1, n, *(100 * each for each in ends)))
    return pd.DataFrame(rows, columns=["dose", "bin", "patients", "expected", "observed", "low", "high"])


def iwpc_rows(patients: pd.DataFrame) -> Iterator[SourceRow]:
    """IWPC's share within 20 % of the right dose, of these patients, beside the one that it published."""
    mg, right = iwpc_dose(patients), patients["dose_mg_per_week"].to_numpy()
    for dose, printed in enumerate(IWPC_WITHIN):
        mine = np.isfinite(mg) & (patients["dose"] == dose).to_numpy()
        near, n = (np.abs(mg - right) <= 0.2 * right)[mine].mean(), int(mine.sum())
        band = tuple(float(each) for each in 100 * binom.ppf([0.025, 0.975], n, near) / n)
        where = f"IWPC 2009, table 3; here {n:,} patients"
        words = f"within 20 % of the right dose by IWPC's algorithm, of 100 who need a {DOSES[dose]}"
        yield SourceRow.of(words, where, printed, SingleRun(float(100 * near), (band[0], band[1])))


def texts(table: pd.DataFrame, **formats: str) -> pd.DataFrame:
    """A table of texts: each number by the format of its column, or whole."""
    shown = {name: table[name].map(formats.get(name, "{:,.0f}").format) for name in table.select_dtypes("number")}
    return table.assign(**shown)


def interval(table: pd.DataFrame) -> pd.Series:
    """Low to high, whole."""
    return table["low"].map("{:.0f}".format) + " to " + table["high"].map("{:.0f}".format)


def findings(found: KnownDoses) -> SourceFindings:
    """All that is to be said."""
    patients, bands, told = found.patients, right_bands(found), guesses(found)
    chances = held_out(patients, FEATURES)
    of, guess = bands.set_index("policy"), told.set_index("policy")["right"]
    private = PRIVATE.format(EPSILON)
    everybody, filled = read_patients(), agreement()
    prices = price_list(found.problem, EPSILON)
    ways = ps.ways_to_publish(found.problem, epsilons=[EPSILON], patients=PUBLISHED)
    earns, iwpc = earned(patients), beside_iwpc(patients, chances)
    curve = [(epsilon, float(of.loc[PRIVATE.format(epsilon), "right"]) / THOUSAND) for epsilon in EPSILONS]
    apart = (bands["model"] - bands["right"]).abs().max()
    return SourceFindings(
        headline=Headline(
            f"A dose that hides two genotypes at ε = {EPSILON:g} is the right band for more patients than one dose for "
            "all, by the doses that they needed",
            f"{of.loc[private, 'right']:.0f} of {THOUSAND:,}",
            f"patients get the right band; {of.loc[ONE, 'right']:.0f} with one dose for all",
        ),
        card=Curves(
            {"genotypes hidden": curve},
            x="ε",
            y="right band, of patients not fitted to",
            share=True,
            level=(("one dose for all", float(of.loc[ONE, "right"]) / THOUSAND),),
        ),
        lead=(
            f"Of {THOUSAND:,} patients, {of.loc[ONE, 'right']:.0f} get the right band with one dose for all, "
            f"{of.loc[PUBLIC, 'right']:.0f} by age and weight alone, {of.loc[private, 'right']:.0f} with both "
            f"genotypes hidden at ε = {EPSILON:g}, and {of.loc[EACH, 'right']:.0f} with genotypes and no privacy: "
            f"policies made on {FOLDS - 1} of {FOLDS} folds, scored on the other by the known dose. The cohort says "
            f"the same of each to within {apart:.0f} of {THOUSAND:,}.",
            f"Without a dose, the best guess of VKORC1 from age and weight is right for {guess[ONE]:.0f} of 100; after "
            f"the dose that is best for each, for {guess[EACH]:.0f}; after a private one at ε = {EPSILON:g}, for "
            f"{guess[private]:.0f}.",
            f"Who pays, held out, against one dose for all, of {THOUSAND:,} of them: {paid_by(found)}.",
            "Fredrikson et al. (2014, USENIX Security 23:17-32) ask the same of models of warfarin doses: a "
            "published dosing model lets others predict a patient's genetic markers, that differential privacy "
            "prevents this at a carefully selected budget, and that patients of dosing models which are private "
            "enough are then exposed to more strokes, bleeding and deaths. What differs: there the model is noised, "
            "and those are protected whose data it was fitted to; here the model is public, and the one is protected "
            "who is treated. There harm is simulated; here it is a right or wrong band, exactly, beside what no "
            "private choice exceeds. We read their abstract only, and take no figure from them.",
        ),
        rows=(
            *iwpc_rows(patients),
            SourceRow.claim(
                "privacy at a budget that stops guesses of genotypes costs patients",
                "Fredrikson et al. 2014, abstract",
                "patients would be exposed to increased risk",
                f"at ε = {EPSILON:g}: {of.loc[EACH, 'right'] - of.loc[private, 'right']:.0f} of {THOUSAND:,} fewer "
                f"right bands than without privacy, {of.loc[private, 'right'] - of.loc[ONE, 'right']:.0f} more than "
                "with one dose for all",
                holds=None,
                why="Another mechanism, another notion of who is protected, another measure of harm.",
            ),
        ),
        sections=(
            table_section(
                "Who gets the right band",
                f"Per {THOUSAND:,} patients. Held out: made on {FOLDS - 1} folds, scored on the other by the known "
                "dose; overdosed: beyond one dose for all, which is the middle one.",
                pd.DataFrame(
                    {
                        "policy": bands["policy"],
                        "right band, cohort": bands["model"].map("{:.0f}".format),
                        "held out": bands["right"].map("{:.0f}".format),
                        "95 % interval": interval(bands),
                        "overdosed, cohort": bands["over_model"].map("{:+.0f}".format),
                        "overdosed, held out": bands["over"].map("{:+.0f}".format),
                    }
                ),
            ),
            table_section(
                "What the dose tells of VKORC1",
                f"Of 100, by the cohort: how often the best guess of VKORC1 is right for somebody who knows age, "
                f"weight and the dose; and the least and largest belief in {RARE} after a dose, of somebody who knows "
                "the dose only.",
                pd.DataFrame(
                    {
                        "policy": told["policy"],
                        "right guess": told["right"].map("{:.1f}".format),
                        f"belief in {RARE}": interval(told),
                    }
                ),
            ),
            table_section(
                "Who pays",
                f"Right bands per {THOUSAND:,} of each group, held out. Race is no feature: no policy sees it.",
                texts(groups(found)),
            ),
            table_section(
                "What hiding each feature costs",
                f"At ε = {EPSILON:g}, all else public: right bands that the best mechanism loses per {THOUSAND:,}, "
                "against the best dose for each.",
                pd.DataFrame(
                    {
                        "hidden": prices["hides"],
                        "right bands lost": (THOUSAND * prices["loss"]).map("{:.0f}".format),
                        "benefit kept": prices["benefit_kept"].map("{:.0%}".format),
                    }
                ),
            ),
            table_section(
                "Giving and publishing are two decisions",
                f"At ε = {EPSILON:g}: where others see only what is published, each may get the best dose. The error "
                f"is that of a count among {PUBLISHED:,} patients.",
                pd.DataFrame(
                    {
                        "way": ways["way"],
                        "benefit kept": ways["benefit_kept"].map("{:.0%}".format),
                        "true doses": ways["true_share"].map("{:.0%}".format).replace("nan%", "–"),
                        "error of a count": ways["error_of_a_count"].map("{:.0f}".format).replace("nan", "–"),
                    }
                ),
            ),
            Section("Expected and needed", drawing=calibration_drawing(calibration(found.needed, chances))),
            table_section(
                "What each feature earns",
                f"Right bands of 100, held out; more: against genotypes, age and weight, with its standard error. A "
                f"feature is used if it makes {EARNS:g} more of 100 right: race and gender make none, amiodarone and "
                "drugs that induce enzymes less than that, and they are not recorded for a quarter of the patients and "
                "more.",
                texts(earns, right="{:.1f}", more="{:+.2f}", se="{:.2f}", loss="{:.3f}"),
            ),
            table_section(
                "Beside the published algorithm",
                "Of 100 patients whose height is known: right bands, also by the band that they need; within 20 %: of "
                "the right dose. IWPC fitted its algorithm to 4,043 patients of these data.",
                texts(iwpc, right="{:.1f}", **dict.fromkeys((*DOSES, "within 20 %"), "{:.1f}")).replace("nan", "–"),
            ),
            table_section(
                "Genotypes that were not measured",
                f"VKORC1 at −1639 was measured for {len(patients) - int(patients['filled'].sum()):,} of the "
                f"{len(patients):,} patients; for the others a site in linkage says it. Agree: of patients with both.",
                texts(filled, agree="{:.1%}"),
            ),
        ),
        assumptions=(
            f"{len(patients):,} of the {len(everybody):,} patients whose dose is known: those with VKORC1, CYP2C9, age "
            "and weight. The others are left out: "
            f"{100 * (1 - known(everybody)['dose'].eq(1).mean()):.0f} of 100 who stay do not need the middle dose, and "
            f"{100 * (everybody.loc[everybody[list(FEATURES)].isna().any(axis=1), 'dose'] != 1).mean():.0f} of 100 who "
            "are left out.",
            "A multinomial logistic model with an indicator for each level, and a weak ridge. Alleles of CYP2C9 rarer "
            "than *3 count as *3 (17 patients of the data).",
            "The coefficients of IWPC's algorithm (N Engl J Med 2009; 360:753-764, its supplementary appendix) were "
            "read in public code that names it, and its shares in table 3 of the paper.",
            "That every wrong band costs the same is the reward of contextual bandits on these data: Bastani and "
            "Bayati (2020, Operations Research 68:276-294) test theirs on warfarin dosing; we read their abstract, "
            "and the reward, 0 for the right band and −1 for a wrong one, in public code that implements it.",
            "A model, not medical advice.",
        ),
    )


def calibration_drawing(table: pd.DataFrame) -> Described:
    """A panel for each band."""
    description = (
        f"Patients who needed a band against how many were expected to by a model that was fitted to the other folds: "
        f"a panel for each band, a point for each tenth of the patients by what is expected; {len(table)} in all. "
        "Grey: where 95 % of such groups lie if the model is right. On the line both are the same."
    )
    return Described(FIGURE, description, table, tuple(map(Calibration, range(len(DOSES)))), height=3.2, across=3)


def find(progress: Progress) -> SourceFindings:
    """Fit, make, give and score."""
    progress.expect(FOLDS)
    return findings(known_doses(progress))


def ask(seed: int = SEED) -> Asked:
    """The question of this script."""
    return Asked(
        script="examples/warfarin_known_doses.py",
        title="Who gets the right dose of warfarin if it must not tell two genotypes, by doses that are known?",
        source="The International Warfarin Pharmacogenetics Consortium (N Engl J Med 2009; 360:753-764; data by "
        "PharmGKB, CC BY-SA 4.0); Fredrikson et al. 2014 (USENIX Security).",
        find=find,
        seed=seed,
    )


if __name__ == "__main__":
    sys.exit(run(ask))
