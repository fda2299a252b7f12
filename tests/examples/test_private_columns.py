"""The patients to learn from and the rows that count them, against enumeration of a small scenario."""

import itertools
import math

import numpy as np
import pytest
from small_studies import write_small_study

import policysim as ps
from examples.experiments.private_columns import Patients, Split, Ward, indicators, reported_rows, true_rows


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    return ps.load_study(write_small_study(tmp_path_factory.mktemp("small"))).scenario


@pytest.fixture(scope="module")
def ward(scenario):
    return Ward(scenario, ("death", "fever"))


def test_the_chance_of_the_outcome_is_that_of_all_that_can_become_of_a_patient(scenario, ward):
    """The small scenario by hand: infected, fever and cough stay or clear, then death by the hazard of what is left."""
    space = scenario.space
    severity = np.broadcast_to(Ward(scenario, ("death",))._response.severity, space.shape).ravel()
    stays = {"infected": 0.9, "fever": 0.8, "cough": 0.9}
    for record in range(space.size):
        codes = dict(zip(space.names, space.codes([record])[0], strict=True))
        none = 0.0
        for left in itertools.product((0, 1), repeat=3):
            chance = math.prod(
                (stays[flag] if present else 1 - stays[flag]) if codes[flag] else float(not present)
                for flag, present in zip(stays, left, strict=True)
            )
            hazard = 0.2 + 0.8 * left[1] + 0.4 * left[2] if codes["infected"] else 1.0
            none += chance * (not left[1]) * math.exp(-severity[record] * hazard)
        assert ward.chance[record] == pytest.approx(1 - none, abs=1e-12)


def test_patients_have_the_outcome_as_often_as_its_chance_says(ward):
    patients = ward.draw(40_000, np.random.default_rng(3))
    expected = ward.chance[patients.records]
    # Given their records the outcomes are independent: five standard errors.
    error = math.sqrt((expected * (1 - expected)).sum())
    assert patients.outcomes.sum() == pytest.approx(expected.sum(), abs=5 * error)
    assert (expected * (1 - expected)).sum() > 1000


def test_records_come_apart_into_parts_and_together_again(scenario):
    split = Split(scenario.space, ("cough", "age"))
    records = np.arange(scenario.space.size)
    public, private = split.parts(records)
    assert split.n_values == 4
    table = split.by_parts(records.astype(float))
    assert np.array_equal(table[public, private], records)
    codes = scenario.space.codes(records)
    assert np.array_equal(split.public_design(public), codes[:, [0, 1, 3]])
    assert np.array_equal(split.private_design[private], codes[:, [2, 4]])


def test_columns_with_more_levels_have_an_indicator_for_each_but_the_first():
    assert indicators(np.arange(6), (3, 2)).tolist() == [
        [0, 0, 0],
        [0, 0, 1],
        [1, 0, 0],
        [1, 0, 1],
        [0, 1, 0],
        [0, 1, 1],
    ]


def test_the_limit_given_a_report_is_bayes(scenario, ward):
    split = Split(scenario.space, ("infected", "cough"))
    channel = split.channel(1.0)
    found = ward.chance_given_report(split, channel)
    p = math.e / (math.e + 3)
    space = scenario.space
    for part, report in itertools.product(range(8), range(4)):
        weight = outcome = 0.0
        for record in range(space.size):
            public, private = (int(code[0]) for code in split.parts(np.array([record])))
            if public == part:
                chance = ward.prior[record] * (p if private == report else (1 - p) / 3)
                weight += chance
                outcome += chance * ward.chance[record]
        assert found[part, report] == pytest.approx(outcome / weight, abs=1e-12)


def test_rows_count_every_patient_once(scenario, ward):
    split = Split(scenario.space, ("age",))
    patients = ward.draw(3000, np.random.default_rng(5))
    rows = true_rows(split, patients)
    assert rows.weights.sum() == 3000
    assert rows.rate == patients.outcomes.mean()
    for record in (0, 17):
        part, value = split.parts(np.array([record]))
        same = (rows.parts == part[0]) & (rows.codes == value[0])
        assert rows.weights[same].sum() == (patients.records == record).sum()
        assert rows.weights[same] @ rows.outcomes[same] == patients.outcomes[patients.records == record].sum()


def test_reports_are_as_often_true_as_the_channel_says(scenario):
    split = Split(scenario.space, ("infected", "cough"))
    n = 20_000
    patients = Patients(np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp))
    channel = split.channel(1.0)
    rows = reported_rows(split, patients, channel, np.random.default_rng(2))
    p = math.e / (math.e + 3)
    for code in range(4):
        share = p if code == 0 else (1 - p) / 3
        assert rows.weights[rows.codes == code].sum() == pytest.approx(n * share, abs=5 * math.sqrt(n * share))
