"""Learning on private columns, against enumeration and closed forms, on a small study."""

import io
import itertools
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from policysim.sources.learning import read
from policysim.sources.learning_findings import analyse
from policysim.sources.learning_patients import Split
from policysim.sources.learning_runs import (
    CONSTANT,
    CORRECTED,
    KNOWN,
    LEFT_OUT,
    LIMIT,
    REPORTED,
    REPORTS,
    TRUE,
    judge_all,
    number_of_steps,
)
from policysim.sources.learning_scores import SCORES
from policysim.sources.learning_summary import reliability_table, score_table
from policysim.sources.page import source_files
from policysim.sources.studies import SourceStudy
from scipy.stats import t
from small_studies import write_small_study

from envs.toml_reader import InputFileError, open_toml
from policysim.study_file import FOLDER

TEXT = """\
study = "{study}"
outcome = ["death", "fever"]
patients = 2000
repeats = 3
epsilon = 1
epsilons = [1, 4]

[[private]]
name = "age"
columns = ["age"]

[[private]]
name = "infection and cough"
columns = ["infected", "cough"]

[[claim]]
about = "training on private columns"
says = "as on the true data"
where = "plan"
"""


def constants_of(text, folder):
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    with open_toml(path) as table:
        constants = read(table)
        table.close()
    return constants


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return write_small_study(tmp_path_factory.mktemp("small")).as_posix()


@pytest.fixture(scope="module")
def text(small):
    return TEXT.format(study=small)


@pytest.fixture(scope="module")
def constants(text, tmp_path_factory):
    return constants_of(text, tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def judged(constants):
    return judge_all(constants, 1)


@pytest.fixture(scope="module")
def findings(constants):
    return analyse(constants, 1)


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
    ways = (CONSTANT, LEFT_OUT, TRUE, REPORTS, CORRECTED, LIMIT)
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


def test_another_epsilon_in_the_file_leaves_the_others_as_they_are(judged, text, tmp_path):
    more = judge_all(constants_of(text.replace("epsilons = [1, 4]", "epsilons = [0.3, 1, 4]"), tmp_path), 1)
    found, before = score_table(more), score_table(judged)
    pd.testing.assert_frame_equal(found[found["epsilon"] != 0.3].reset_index(drop=True), before)


def test_progress_is_called_as_often_as_it_was_announced(constants):
    calls = []
    judge_all(constants, 1, lambda: calls.append(1))
    assert len(calls) == number_of_steps(constants)


def study_of(constants, text):
    return SourceStudy("small", text, "Title", "Source", "learning-on-private-columns", 1, constants)


@pytest.fixture(scope="module")
def files(constants, text, findings):
    return source_files(study_of(constants, text), findings, 1)


def test_the_numbers_of_the_page_are_those_of_its_tables(findings, files):
    page = files["report.html"].decode()
    for place in (1, 2):
        section = findings.sections[2 * place - 2]
        table = pd.read_csv(io.BytesIO(files[f"figures/scores-{place}.csv"])).query("epsilon == 1")
        values = table.set_index(["asked", "line", "score"])[["value", "high"]]
        for asked, trained, *cells in section.cells:
            known = {"the record": KNOWN, "the report": REPORTED}[asked]
            for score, cell in zip(SCORES, cells, strict=True):
                value, high = values.loc[(known, trained, score)]
                assert cell == f"{value:.4f} ± {high - value:.4f}"
                assert cell in page


def test_two_runs_leave_the_same_bytes_and_another_seed_does_not(constants, text, files):
    assert files == source_files(study_of(constants, text), analyse(constants, 1), 1)
    other = analyse(constants, 2).drawings[0].table.to_csv(index=False, float_format="%.12g", lineterminator="\n")
    assert other.encode() != files["figures/scores-1.csv"]


def test_the_built_in_study_can_be_read():
    with open_toml(FOLDER / "learning-on-private-columns.toml") as table:
        for key in ("analysis", "title", "source", "seed"):
            assert key in table
            table.known.add(key)
        constants = read(table)
        table.close()
    assert constants.outcome == ("death", "pneumonia")
    assert [Split(constants.scenario.space, one.columns).n_values for one in constants.private] == [10, 8]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('columns = ["age"]', 'columns = ["agee"]', "study.toml:10: private[0].columns[0]: unknown name 'agee'"),
        ('outcome = ["death", "fever"]', 'outcome = ["smoker"]', "study.toml:2: outcome[0]: unknown name 'smoker'"),
        ("patients = 2000", "patients = 10", "study.toml:3: patients: must be a whole number >= 1000, got 10"),
        ("repeats = 3", "repeats = 1", "study.toml:4: repeats: must be a whole number >= 2, got 1"),
        ("epsilon = 1", "epsilon = inf", "study.toml:5: epsilon: must be a number in [0.01, 30], got inf"),
        ("epsilons = [1, 4]", "epsilons = []", "study.toml:6: epsilons: must not be empty"),
        (
            'columns = ["age"]',
            'columns = ["infected", "fever", "cough", "smoker", "age"]',
            "study.toml:10: private[0].columns: must leave at least one column public",
        ),
    ],
)
def test_mistakes_in_the_file_are_named_with_their_line(text, tmp_path, old, new, message):
    assert old in text
    with pytest.raises(InputFileError) as error:
        constants_of(text.replace(old, new, 1), tmp_path)
    assert message in str(error.value)


def test_scikit_learn_is_imported_only_where_it_is_used():
    code = "import sys, policysim.sources.learning_findings; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
