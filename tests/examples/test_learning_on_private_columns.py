"""Learning on private columns, against enumeration and closed forms, on a small study."""

import hashlib
import html
import io
import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from drawings import draw_only
from learning_on_private_columns import (
    CONSTANT,
    CORRECTED,
    KNOWN,
    LEAST_SHOWN,
    LEFT_OUT,
    LIMIT,
    REPORTED,
    REPORTS,
    SCORES,
    TRUE,
    Experiment,
    ask,
    judge_all,
    reliability_table,
    score_table,
)
from learning_on_private_columns import findings as say
from private_columns import Split
from scipy.stats import t
from small_studies import write_small_study

from policysim.output.deliver import FigureFiles, folder_files
from policysim.question.protocol import SILENT, Progress

SCRIPT = "examples/learning_on_private_columns.py"


def readable(page):
    """The page's text, with entities and the spaces that do not break undone."""
    return html.unescape(page).replace("\u00a0", " ")


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


def test_another_epsilon_leaves_the_others_as_they_are(judged, constants):
    more = judge_all(replace(constants, epsilons=(0.3, 1.0, 4.0)), 1)
    found, before = score_table(more), score_table(judged)
    pd.testing.assert_frame_equal(found[found["epsilon"] != 0.3].reset_index(drop=True), before)


@pytest.fixture(scope="module")
def findings(constants, judged):
    return say(constants, judged)


def files_of(constants, seed):
    asked = ask(constants, seed)
    # PNG is made of the figure that SVG is made of.
    return folder_files(asked.answer(SILENT), asked.command, FigureFiles(("svg",)))


@pytest.fixture(scope="module")
def files(constants):
    """One figure of each kind is drawn."""
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch, "scores-1", "reliability")
        return files_of(constants, 1)


def test_the_numbers_of_the_page_are_those_of_its_tables(findings, files):
    page = readable(files["report.html"].decode())
    for place in (1, 2):
        section = findings.sections[2 * place - 1]
        table = pd.read_csv(io.BytesIO(files[f"figures/scores-{place}.csv"])).query("epsilon == 1")
        values = table.set_index(["asked", "line", "score"])[["value", "high"]]
        for asked, trained, *cells in section.rows:
            known = {"the record": KNOWN, "the report": REPORTED}[asked]
            for score, cell in zip(SCORES, cells, strict=True):
                value, high = values.loc[(known, trained, score)]
                assert cell == f"{value:.4f} ± {high - value:.4f}"
                assert cell in page


def test_two_runs_leave_the_same_bytes_and_another_seed_does_not(constants, files, monkeypatch):
    draw_only(monkeypatch, "scores-1", "reliability")
    assert files_of(constants, 1) == files
    draw_only(monkeypatch)
    other = files_of(constants, 2)
    assert other["figures/scores-1.csv"] != files["figures/scores-1.csv"]
    assert json.loads(other["manifest.json"])["command"] == f"python {SCRIPT} --seed 2"


def test_the_manifest_names_the_script_and_its_digest(files):
    manifest = json.loads(files["manifest.json"])
    assert manifest["command"] == f"python {SCRIPT}"
    script = (Path(__file__).parents[2] / SCRIPT).read_bytes()
    assert manifest["study"]["sha256"] == hashlib.sha256(script).hexdigest()
    assert set(manifest["results"]) == set(files) - {"manifest.json"}


def test_the_numbers_below_a_figure_are_those_that_it_draws(findings, files):
    for drawing in findings.drawings:
        table = pd.read_csv(io.BytesIO(files[f"figures/{drawing.name}.csv"]))
        if "score" in table:
            # The error rate is drawn in its place.
            table = table[table["score"] != "accuracy"]
        drawn = {round(float(text), 9) for text in table["value"]}
        keys = ["ε", "predicted", "patients"]
        values = drawing.shown.select_dtypes("number").drop(columns=keys, errors="ignore")
        below = {round(float(number), 9) for number in values.to_numpy().ravel()}
        assert below == drawn, drawing.name


def test_progress_counts_every_repeat_for_every_set_of_columns(constants):
    seen, expected = [], []
    judge_all(replace(constants, repeats=2, epsilons=(1.0,)), 1, Progress(seen.append, expected.append))
    assert sum(expected) == sum(seen) == 2 * 2


def test_a_score_below_the_least_that_is_shown_is_drawn_there(findings):
    for drawing in findings.drawings[:2]:
        lowest = min(min(line.get_ydata()) for axes in drawing.figure().axes[-2:] for line in axes.get_lines())
        assert lowest == max(LEAST_SHOWN, drawing.table.query("score == 'calibration_error'")["value"].min())


def test_the_experiment_hands_over_the_columns_that_it_names():
    experiment = Experiment()
    assert experiment.outcome == ("death", "pneumonia")
    space = experiment.scenario.space
    assert [Split(space, columns).n_values for columns in experiment.private.values()] == [10, 8]


def test_the_committed_numbers_are_of_these_columns():
    folder = Path(__file__).parents[2] / "reports" / "learning-on-private-columns"
    tables = [pd.read_csv(path) for path in sorted((folder / "figures").glob("scores-*.csv"))]
    assert len(tables) == len(Experiment().private)
    for table in tables:
        assert set(table["epsilon"]) == set(Experiment().epsilons)
        # six ways to train, two questions, six epsilons, four scores and the error rate
        assert len(table) == 6 * 2 * 6 * 5
