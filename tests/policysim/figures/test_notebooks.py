"""What notebooks show: valid and escaped HTML whose numbers are the object's, whatever the object."""

import math
from html.parser import HTMLParser

import numpy as np
import pytest
from small_studies import STUDY, write_small_study

import policysim as ps
from policies.html_table import cell
from policies.sensitivity import Witness

HOSTILE = "<script>alert(1)</script>"


class Tables(HTMLParser):
    """The rows of all tables by their first cell; a tag that closes nothing is a mistake."""

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.tags = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("th", "td"):
            self.rows[-1][-1] += data

    def row(self, name):
        return next(row[1:] for row in self.rows if row[0] == name)


def shown(thing):
    text = thing._repr_html_()
    assert "<script" not in text
    return Tables(text)


def number(text):
    return float(text.replace(",", "").replace("∞", "inf"))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    text = STUDY.replace('"A small study"', f"'{HOSTILE}'")
    return ps.load_study(write_small_study(tmp_path_factory.mktemp("study"), text))


@pytest.fixture(scope="module")
def problem(study):
    return ps.build_problem(study)


def test_a_study_shows_its_question_and_what_is_hidden_from_whom(study):
    found = shown(study)
    assert found.row("title") == [HOSTILE]  # as text
    assert found.row("hidden from") == [study.hidden_from]
    assert number(found.row("records")[0]) == study.space.size
    assert found.row("ε of the curve") == ["0.5, 1, 4"]
    assert found.row("SHA-256") == [study.digest]
    hidden = study.with_choices(sensitive=["smoker", "age"])
    assert shown(hidden).row("hidden features") == ["smoker, age"]


def test_a_problem_shows_its_stakes_and_what_each_action_is_worth(problem):
    found = shown(problem)
    assert number(found.row("records")[0]) == problem.n_records
    best = (problem.prior * problem.utilities.max(axis=1)).sum()
    assert number(found.row("value of the best action for each")[0]) == pytest.approx(best, rel=1e-5)
    assert number(found.row("sensitivity Δ")[0]) == pytest.approx(problem.sensitivity.value, rel=1e-5)
    assert number(found.row("range Γ")[0]) == pytest.approx(problem.sensitivity.range, rel=1e-5)
    for place, action in enumerate(problem.actions):
        value, share, deaths, *_ = map(number, found.row(action))
        assert value == pytest.approx(problem.prior @ problem.utilities[:, place], rel=1e-5)
        assert share == pytest.approx(problem.prior[problem.utilities.argmax(axis=1) == place].sum(), rel=1e-5)
        assert deaths == pytest.approx(problem.prior @ problem.outcomes["death"][:, place], rel=1e-5)


def test_a_sensitivity_that_takes_long_is_not_computed_to_be_shown():
    n = 1 << 12
    problem = ps.DecisionProblem(np.zeros((n, 2)), np.full(n, 1 / n), ps.OneFeature((2,) * 12))
    big = 100_000
    long = ps.DecisionProblem(np.zeros((big * 64, 2)), np.full(big * 64, 1 / big / 64), ps.AnyRecord())
    assert shown(problem).row("range Γ") == ["0"]
    assert shown(long).row("range Γ") == ["not computed"]
    assert "sensitivity" not in long.__dict__


def test_a_sensitivity_shows_who_attains_it(problem):
    found = problem.sensitivity
    tables = shown(found)
    value, record, neighbour, actions = tables.row("value Δ")
    assert number(value) == pytest.approx(found.value, rel=1e-5)
    assert (int(record), int(neighbour)) == (found.witness.record, found.witness.neighbour)
    assert actions == str(found.witness.action)
    moved = abs(problem.utilities[int(record), int(actions)] - problem.utilities[int(neighbour), int(actions)])
    assert moved == pytest.approx(number(value), rel=1e-5)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 800.0, math.inf, math.nan])
def test_a_privacy_loss_of_any_size_is_shown_with_what_it_means(epsilon):
    found = shown(ps.PrivacyLoss(epsilon, Witness(3, 1, (2,))))
    guesses = found.row("better guess between two equally likely neighbours right, of 100")[0]
    if math.isnan(epsilon):
        assert guesses == "–"
    else:
        assert number(found.row("epsilon")[0]) == epsilon
        assert number(guesses) == pytest.approx(100 / (1 + math.exp(-epsilon)), rel=1e-5)
    assert (found.row("record"), found.row("action")) == (["3"], ["2"])


@pytest.mark.parametrize("epsilon", [0.0, 0.5, math.inf])
@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip", "report-noisy-max"])
def test_a_selection_shows_its_best_candidates_and_warns(epsilon, mechanism):
    chosen = ps.select([3, 9, 5], epsilon=epsilon, mechanism=mechanism, candidates=[HOSTILE, "b", "c"])
    found = shown(chosen)
    assert [row[0] for row in found.rows[-3:]] == ["b", "c", HOSTILE]
    assert number(found.row("b")[1]) == pytest.approx(chosen.probabilities[1], rel=1e-5)
    assert "must not be published" in chosen._repr_html_()


def test_cells_are_short_and_escaped():
    assert cell("<&>\"'") == "&lt;&amp;&gt;&quot;&#x27;"
    assert len(cell("word " * 1000)) <= 200
    assert [cell(value) for value in (True, np.int64(1234), np.float64(0.1), -math.inf)] == [
        "yes",
        "1,234",
        "0.1",
        "−∞",
    ]
