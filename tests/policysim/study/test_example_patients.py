"""Example patients: who they are in words, and what each policy gives them."""

import numpy as np
import pytest
from small_studies import SCENARIO, STUDY, write_small_study

import policysim as ps
from envs.records import Feature, RecordSpace, record_space
from policies import AnyRecord
from policysim.study.example_patients import ExamplePatient, example_patients, example_probabilities


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return ps.load_study(write_small_study(tmp_path_factory.mktemp("study")))


@pytest.fixture(scope="module")
def problem(study):
    return ps.build_problem(study)


def patients_of(study, problem):
    return example_patients(problem, study.illness)


def described(study, problem):
    return {patient.label: problem.records.describe(patient.record) for patient in patients_of(study, problem)}


def test_the_patients_of_covid_are_those_of_the_question(covid, covid_problem):
    found = described(covid, covid_problem)
    older = found["aged 60, infected, loss of taste and 12 more"]
    # Both sexes are as common: the first stands for both.
    assert older.endswith("age 60-79, male, vaccine none")
    # Having been ill before is no comorbidity; all others are.
    for feature in covid.space.features:
        if feature.flag:
            assert (feature.in_words("1") in older.split(", ")) == (feature.name != "covid_recovered")
    (younger,) = [text for label, text in found.items() if label.startswith("aged 25, nothing present")]
    assert younger.startswith("nothing present, age 18-39")


def test_each_record_is_there_once_with_all_its_names(study, problem):
    patients = patients_of(study, problem)
    assert len({patient.record for patient in patients}) == len(patients)
    names = "; ".join(patient.label for patient in patients).split("; ")
    assert len(names) == 3
    assert len(set(names)) == 3


# Levels of age, and those that the patients of 60 and 25 years get.
LEVELS = [
    (["0-17", "18-39", "40-59", "60-79", "80+"], ("aged 60", "60-79"), ("aged 25", "18-39")),
    (["< 28", "28 to < 34", "34 to < 60", "≥ 60"], ("aged 60", "≥ 60"), ("aged 25", "< 28")),
    (["< 25", "25 to < 60", "60+"], ("aged 60", "60+"), ("aged 25", "25 to < 60")),
    (["< 30", "30 to < 60"], ("age 30 to < 60", "30 to < 60"), ("aged 25", "< 30")),
    (["group 1", "group 60"], ("age group 60", "group 60"), ("age group 1", "group 1")),
]


@pytest.mark.parametrize(("levels", "older", "younger"), LEVELS)
def test_the_level_that_holds_the_age_is_found_in_whatever_words(tmp_path, levels, older, younger):
    listed = ", ".join(f'"{level}"' for level in levels)
    shares = ", ".join([f"{1 - 0.1 * (len(levels) - 1):.1f}", *["0.1"] * (len(levels) - 1)])
    scenario = SCENARIO.replace(
        'age = { levels = ["young", "old"], shares = [0.7, 0.3] }',
        f"age = {{ levels = [{listed}], shares = [{shares}] }}",
    ).replace("age = [1, 4]", f"age = {[1] * len(levels)}")
    study = ps.load_study(write_small_study(tmp_path, STUDY, scenario))
    problem = ps.build_problem(study)
    texts = [(p.label.split("; ")[0], problem.records.describe(p.record)) for p in patients_of(study, problem)]
    assert texts[0][0] == f"{older[0]}, infected, fever and 2 more"
    assert f"age {older[1]}" in texts[0][1]
    assert texts[1][0] == f"{younger[0]}, nothing present"
    assert f"age {younger[1]}" in texts[1][1]


def test_records_without_flags_or_ages_have_no_ill_and_healthy_example():
    space = record_space({"ward": ("a", "b", "c")})
    small = ps.DecisionProblem([[0, 1], [2, 0], [1, 1]], [0.2, 0.5, 0.3], AnyRecord(), records=space)
    labels = [patient.label for patient in example_patients(small, ())]
    assert all("symptom" not in label and "aged" not in label for label in labels)
    assert any("most common" in label for label in labels)


def test_few_illnesses_are_named_and_no_age_or_illness_is_made_up():
    space = RecordSpace((Feature("ward", ("a", "b")), Feature("old_scar", flag=True), Feature("fever", flag=True)))
    small = ps.DecisionProblem(np.eye(8, 2), np.full(8, 1 / 8), AnyRecord(), records=space)

    def first(illness):
        return [patient.label.split("; ")[0] for patient in example_patients(small, illness)][:2]

    assert first(("old_scar", "fever")) == ["old scar and fever", "nothing present"]
    # Of flags that make nobody ill, the patient has the most common.
    assert first(("fever",)) == ["fever", "nothing present"]
    # A flag that makes nobody ill describes nobody.
    assert not any("scar" in label or "fever" in label for label in first(()))


def impossible(tmp_path, shares='["young", "old"], shares = [0.7, 0.3]'):
    """A disease of levels and flags: whoever has a fever has no cough, and the pair of the sensitivity cannot be."""
    scenario = (
        SCENARIO.replace('["young", "old"], shares = [0.7, 0.3]', shares)
        + """
[[rules]]
when = { fever = 1 }
set = { cough = 0 }

[[rules]]
when = { smoker = 1 }
set = { infected = 0 }
"""
    )
    study = ps.load_study(write_small_study(tmp_path, STUDY, scenario))
    return study, ps.build_problem(study)


def test_no_patient_is_shown_who_cannot_exist(tmp_path):
    study, problem = impossible(tmp_path)
    # The patient who is ill in every way cannot be.
    assert problem.prior.min() == 0
    patients = patients_of(study, problem)
    assert all(problem.prior[patient.record] > 0 for patient in patients)
    # The illest: of the old who are possible, those with most flags, by their own.
    rows = study.space.decode(np.arange(problem.n_records)).assign(prior=problem.prior)
    rows["flags"] = rows[["infected", "fever", "cough", "smoker"]].sum(axis=1)
    old = rows[(rows["age"] == "old") & (rows["prior"] > 0)]
    illest = old[old["flags"] == old["flags"].max()]["prior"].idxmax()
    assert patients[0].record == illest
    assert patients[0].label.startswith("age old, ")
    present = [name for name in ("infected", "fever", "cough", "smoker") if rows.loc[illest, name] == 1]
    assert patients[0].label.split("; ")[0] == f"age old, {' and '.join(present)}"


def test_whatever_the_prior_holds_possible_the_examples_are_among_it():
    space = RecordSpace((*(Feature(name, flag=True) for name in ("scar", "fever")), Feature("age", ("18-39", "60+"))))
    rng = np.random.default_rng(5)
    for _ in range(200):
        prior = rng.random(8) * (rng.random(8) < 0.4)
        prior[rng.integers(8)] += 0.1
        small = ps.DecisionProblem(rng.random((8, 2)), prior / prior.sum(), AnyRecord(), records=space)
        patients = example_patients(small, ["scar", "fever"])
        assert all(prior[patient.record] > 0 for patient in patients)
        for patient in patients:
            row = space.decode([patient.record]).iloc[0]
            told = patient.label.split("; ")[0]
            if told.startswith(("age", "aged")):
                words = " and ".join(name for name in ("scar", "fever") if row[name] == 1) or "nothing present"
                assert told.endswith(f", {words}")
                assert told.startswith({"18-39": ("aged 25", "age 18-39"), "60+": ("aged 60", "age 60+")}[row["age"]])


def test_probabilities_are_those_of_the_policies_and_of_the_records(problem):
    examples = [ExamplePatient("one", 3), ExamplePatient("other", 17)]
    policies, epsilons = ["optimal", "greedy", "exponential"], [0.0, 0.5, 2.0]
    table = example_probabilities(problem, examples, policies, epsilons)
    assert list(table.columns) == ["policy", "epsilon", "patient", "action", "probability"]
    assert len(table) == 3 * 3 * 2 * 3
    for (name, epsilon, patient), rows in table.groupby(["policy", "epsilon", "patient"]):
        whole = ps.make_policy(name, epsilon=epsilon).probabilities(problem)
        expected = whole[{"one": 3, "other": 17}[patient]]
        assert rows["action"].tolist() == list(problem.actions)
        assert rows["probability"].to_numpy() == pytest.approx(expected, abs=0)
