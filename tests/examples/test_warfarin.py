"""The warfarin consortium's patients, their cohort, and what is known of them from elsewhere."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array

import policysim as ps
from examples.experiments.warfarin_cohort import COHORT, FOLDER, REDRAWS, redraws
from examples.experiments.warfarin_known_doses import IWPC_WITHIN
from examples.experiments.warfarin_patients import (
    DOSES,
    FEATURES,
    GENOTYPES,
    LEVELS,
    cohort_of,
    held_out,
    iwpc_dose,
    known,
    read_patients,
)
from policysim.study.study_problem import build_problem

# Of 4,727 complete cases, from an analysis of its own (other kinds, the same data): right bands, and the benefit that
# the best private choice keeps if the farthest band costs double.
ONE, BY_PUBLIC, BY_ALL = 0.528, 0.561, 0.652
KEPT = {
    "any-record": {0.5: 0.0, 1.0: 0.0, 2.0: 0.334, 3.0: 0.672, 5.0: 0.923},
    "sensitive": {0.5: 0.290, 1.0: 0.390, 2.0: 0.655, 3.0: 0.825, 5.0: 0.965},
}
# How far two samples of so many patients are apart with 95 %.
APART = 1.96 * np.sqrt(2)


@pytest.fixture(scope="module")
def patients():
    return known(read_patients())


@pytest.fixture(scope="module")
def complete():
    """Those with both genotypes measured; where age or weight is missing, the commonest level."""
    found = read_patients()
    found = found[found["vkorc1_1639"].notna() & found["cyp2c9"].notna()]
    return found.fillna({name: found[name].mode()[0] for name in ("age", "weight")}).reset_index(drop=True)


def problem_of(cohort, hidden, **weights):
    """The study's, of a cohort."""
    return ps.problem_from_frame(
        cohort, features=FEATURES, treatment="dose", patients="patients", weights=weights, sensitive=hidden
    )


def test_the_cohort_of_the_study_is_that_of_the_patients(patients):
    shipped = pd.read_csv(FOLDER / COHORT)
    made = cohort_of(patients)
    assert shipped[[*FEATURES, "dose", "patients"]].equals(made[[*FEATURES, "dose", "patients"]])
    outcomes = ["overdosed", "underdosed", "two_bands_off"]
    assert np.abs(shipped[outcomes] - made[outcomes]).to_numpy().max() < 1e-3
    assert shipped["patients"].sum() == len(DOSES) * len(patients)
    assert len(shipped) == len(DOSES) * np.prod([len(levels) for levels in LEVELS.values()])


def test_the_redraws_of_the_study_are_those_of_the_script(patients):
    shipped, again = pd.read_parquet(FOLDER / REDRAWS), redraws(patients, n=1)
    first = shipped[shipped["draw"] == 0].reset_index(drop=True)
    assert first["patients"].tolist() == again["patients"].tolist()
    assert np.abs(first["overdosed"] - again["overdosed"]).max() < 2e-3
    assert shipped["draw"].nunique() == 200


def test_a_wrong_dose_is_over_or_under_by_what_is_needed():
    table = pd.read_csv(FOLDER / COHORT).set_index([*FEATURES, "dose"])
    wide = table[["overdosed", "underdosed", "two_bands_off"]].unstack("dose")
    right = 1 - wide["overdosed"] - wide["underdosed"]
    assert np.allclose(right.sum(axis=1), 1, atol=1e-4)
    assert (wide["overdosed"]["low dose"] == 0).all()
    assert np.allclose(wide["two_bands_off"]["low dose"], right["high dose"], atol=1e-4)
    assert (wide["two_bands_off"]["middle dose"] == 0).all()


def test_accuracies_are_those_of_another_analysis_within_sampling_error(complete):
    assert len(complete) == 4727
    dose = complete["dose"].to_numpy()
    assert (dose == 1).mean() == pytest.approx(ONE, abs=5e-4)
    for features, seen in ((("age", "weight"), BY_PUBLIC), (FEATURES, BY_ALL)):
        right = (held_out(complete, features).argmax(axis=1) == dose).mean()
        assert abs(right - seen) < APART * np.sqrt(seen * (1 - seen) / len(dose))


def test_shares_kept_are_those_of_another_analysis_within_sampling_error(complete):
    def kept(patients):
        cohort = cohort_of(patients)
        return {
            (name, epsilon): share
            for name, hidden in (("any-record", ()), ("sensitive", GENOTYPES))
            for epsilon, share in _kept(problem_of(cohort, hidden, overdosed=1, underdosed=1, two_bands_off=1)).items()
        }

    found, rng = kept(complete), np.random.default_rng(1)
    drawn = pd.DataFrame([kept(complete.iloc[rng.integers(len(complete), size=len(complete))]) for _ in range(10)])
    for name, shares in KEPT.items():
        for epsilon, share in shares.items():
            assert abs(found[name, epsilon] - share) <= APART * drawn[name, epsilon].std() + 0.01, (name, epsilon)


def _kept(problem):
    table = ps.compare(problem, policies=["optimal"], epsilons=list(KEPT["sensitive"]))
    mine = table[(table["policy"] == "optimal") & (table["group"] == "all")]
    return dict(zip(mine["epsilon"], mine["benefit_kept"], strict=True))


@pytest.mark.parametrize("name", ["warfarin", "warfarin-double"])
@pytest.mark.parametrize("adjacency", ["sensitive", "any-record"])
def test_the_optimum_is_that_of_a_linear_programme_over_all_kinds(name, adjacency):
    study = ps.load_study(name)
    problem = build_problem(study if adjacency == "sensitive" else study.with_choices(adjacency=adjacency))
    for epsilon in (0.5, 1.0, 3.0):
        value = problem.value(ps.make_policy("optimal", epsilon=epsilon).probabilities(problem))
        assert value == pytest.approx(programme(problem, adjacency, epsilon), abs=1e-9)


def programme(problem, adjacency, epsilon):
    """The most that p(a|x) can be worth with m(a) <= p(a|x) <= e^epsilon m(a) in each class of age and weight."""
    n, k = problem.utilities.shape
    pairs = [problem.records.groups(feature)[0] for feature in ("age", "weight")]
    public = 10 * pairs[0] + pairs[1] if adjacency == "sensitive" else np.zeros(n, dtype=int)
    _, classes = np.unique(public, return_inverse=True)
    p, m = np.arange(n * k), n * k + (classes[:, None] * k + np.arange(k)).ravel()
    size = n * k + (classes.max() + 1) * k
    below = coo_array(
        (np.r_[np.ones(n * k), -np.full(n * k, np.exp(epsilon))], (np.r_[p, p], np.r_[p, m])), (n * k, size)
    )
    above = coo_array((np.r_[-np.ones(n * k), np.ones(n * k)], (np.r_[p, p], np.r_[p, m])), (n * k, size))
    cost = np.r_[-(problem.prior[:, None] * problem.utilities).ravel(), np.zeros(size - n * k)]
    sums = coo_array((np.ones(n * k), (p // k, p)), (n, size))
    upper = coo_array(np.vstack([below.toarray(), above.toarray()]))
    found = linprog(
        cost, A_ub=upper, b_ub=np.zeros(2 * n * k), A_eq=sums, b_eq=np.ones(n), bounds=(0, 1), method="highs"
    )
    return -found.fun


def test_iwpcs_algorithm_does_as_published(patients):
    """Within 20 % of the right dose, by what patients need: table 3 of the paper, other patients of the same data."""
    mg, right = iwpc_dose(patients), patients["dose_mg_per_week"].to_numpy()
    for dose, printed in enumerate(IWPC_WITHIN):
        mine = np.isfinite(mg) & (patients["dose"] == dose).to_numpy()
        near = (np.abs(mg - right) <= 0.2 * right)[mine].mean()
        assert abs(near - float(printed) / 100) < 3 * np.sqrt(near * (1 - near) / mine.sum())


def test_iwpcs_algorithm_of_one_patient_by_hand():
    patient = pd.DataFrame(
        {
            "decade": ["60-69"],
            "height_cm": [170.0],
            "weight_kg": [80.0],
            "vkorc1": ["A/G"],
            "cyp2c9_measured": ["*1/*3"],
            "race": ["Asian"],
            "amiodarone": [1.0],
            **{name: [np.nan] for name in ("carbamazepine", "phenytoin", "rifampin")},
        }
    )
    root = 5.6044 - 0.2614 * 6 + 0.0087 * 170 + 0.0128 * 80 - 0.8677 - 0.9357 - 0.1092 - 0.5503
    assert iwpc_dose(patient)[0] == pytest.approx(root**2)
