"""Learning on private columns, against enumeration and closed forms, on a small study."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t
from small_studies import write_small_study

from examples.experiments import learning_on_private_columns
from examples.experiments.learning_on_private_columns import (
    AS_IF_TRUE,
    CONSTANT,
    CORRECTED,
    KNOWN,
    LEFT_OUT,
    LIMIT,
    REPORTED,
    SCORES,
    TRUE,
    Experiment,
    judge_all,
    reliability_table,
    score_table,
)
from examples.experiments.private_columns import Split
from examples.reporting import REPORTS


@pytest.fixture(scope="module")
def constants(tmp_path_factory):
    return Experiment(
        study=write_small_study(tmp_path_factory.mktemp("small")).as_posix(),
        outcome=("death", "fever"),
        patients=2000,
        repeats=3,
        epsilons=(1.0, 4.0),
        private={"age": ("age",), "infection and cough": ("infected", "cough")},
    )


@pytest.fixture(scope="module")
def judged(constants):
    return judge_all(constants, 1)


def test_intervals_are_t_intervals_of_the_repeats(judged):
    table = score_table(judged)
    for asked, trained, score in ((KNOWN, CORRECTED, "brier"), (REPORTED, TRUE, "accuracy")):
        values = [
            one.scores[score]
            for one in judged
            if (one.private, one.asked, one.trained, one.epsilon) == ("age", asked, trained, 1.0)
        ]
        assert len(values) == 3
        row = table.query(
            "private == 'age' and asked == @asked and trained == @trained and epsilon == 1 and score == @score"
        ).iloc[0]
        reach = t.ppf(0.975, 2) * np.std(values, ddof=1) / math.sqrt(3)
        # rounded to six decimals
        assert row["mean"] == pytest.approx(np.mean(values), abs=1e-6)
        assert (row["low"], row["high"]) == pytest.approx((row["mean"] - reach, row["mean"] + reach), abs=2e-6)


def test_every_way_to_train_is_judged_at_every_epsilon_for_both_questions(judged):
    table = score_table(judged)
    ways = (CONSTANT, LEFT_OUT, TRUE, AS_IF_TRUE, CORRECTED, LIMIT)
    expected = set(itertools.product(("age", "infection and cough"), (KNOWN, REPORTED), ways, (1.0, 4.0), SCORES))
    assert (
        set(table[["private", "asked", "trained", "epsilon", "score"]].itertuples(index=False, name=None)) == expected
    )
    assert len(table) == len(expected)


def test_no_classifier_has_a_lower_brier_score_than_the_limit(judged):
    table = score_table(judged)
    brier = table[table["score"] == "brier"].pivot(
        index=["private", "asked", "epsilon"], columns="trained", values="mean"
    )
    # 6,000 patients: the difference to the limit has a standard deviation of at most 2 sqrt(d / 6000), d the excess,
    # so that one of 0.002 would be three of them.
    assert (brier.drop(columns=LIMIT).min(axis=1) > brier[LIMIT] - 0.002).all()


def test_a_reliability_curve_counts_the_patients_of_all_repeats(judged):
    table = reliability_table(judged, "age", 1.0)
    rows = table.query("asked == @KNOWN and trained == @CONSTANT", local_dict={"KNOWN": KNOWN, "CONSTANT": CONSTANT})
    # One bin a repeat's rate; all lie in one.
    assert rows["patients"].sum() == 6000
    assert set(table["asked"]) == {KNOWN, REPORTED}


def test_another_epsilon_leaves_the_others_as_they_are(judged, constants):
    more = judge_all(replace(constants, epsilons=(0.3, 1.0, 4.0)), 1)
    found, before = score_table(more), score_table(judged)
    pd.testing.assert_frame_equal(found[found["epsilon"] != 0.3].reset_index(drop=True), before)


def test_the_report_has_the_numbers_of_its_tables(constants, judged, tmp_path, monkeypatch):
    monkeypatch.setattr(learning_on_private_columns, "judge_all", lambda _: judged)
    learning_on_private_columns.main(constants, tmp_path)
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    for number in (1, 2):
        table = pd.read_csv(tmp_path / "figures" / f"scores-{number}.csv").query("epsilon == 1 and score in @SCORES")
        assert len(table) == 6 * 2 * 4
        for value, high in table[["value", "high"]].itertuples(index=False):
            assert f" {value:.4f} ± {high - value:.4f} |" in page
    reliable = pd.read_csv(tmp_path / "figures" / "reliability.csv")
    assert reliable["line"].drop_duplicates().tolist() == [AS_IF_TRUE, CORRECTED, TRUE]
    claim = pd.read_csv(tmp_path / "comparison.csv").iloc[0]
    found = learning_on_private_columns.Scores(score_table(judged), 1.0)
    names = list(constants.private)
    errors = {name: [found.mean(name, way, "calibration_error") for way in (AS_IF_TRUE, TRUE)] for name in names}
    worst = max(names, key=lambda name: errors[name][0])
    assert claim["why"].startswith("Calibration error {:.2g} instead of {:.2g} ({}".format(*errors[worst], worst))


def test_the_experiment_hands_over_the_columns_that_it_names():
    experiment = Experiment()
    assert experiment.outcome == ("death", "pneumonia")
    space = experiment.scenario.space
    assert [Split(space, columns).n_values for columns in experiment.private.values()] == [10, 8]


def test_the_committed_numbers_are_of_these_columns():
    folder, experiment = REPORTS / "learning-on-private-columns", Experiment()
    tables = [pd.read_csv(path) for path in sorted((folder / "figures").glob("scores-*.csv"))]
    assert len(tables) == len(experiment.private)
    for table in tables:
        assert set(table["epsilon"]) == set(experiment.epsilons)
        # six ways to train, two questions, six epsilons, four scores and the error rate
        assert len(table) == 6 * 2 * 6 * 5
