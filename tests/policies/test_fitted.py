"""Fitted policies: the table, what it reveals and is worth, rows and observations as records, and what is drawn."""

import pickle
import re
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from random_problems import loss_by_pairs, neighbour_pairs

import policysim as ps
from envs import Feature, RecordSpace
from policies import AnyRecord, DecisionProblem, OneFeature, Policy, Sensitive, make_policy

SPACE = RecordSpace((Feature("fever", flag=True), Feature("age", ("young", "middle", "old"))))
# Only the young must not get the third treatment.
ALLOWED = np.array([[1, 1, codes != 0] for codes in (0, 1, 2) * 2], dtype=bool)
FRAME = pd.DataFrame({"fever": [1, 0, "1"], "age": ["old", "young", "middle"], "name": ["x", "y", "z"]})
CODES = [[1, 2], [0, 0], [1, 1]]
RECORDS = [5, 0, 4]


class Given:
    """In place of a generator: these uniform numbers."""

    def __init__(self, *numbers):
        self.numbers = np.array(numbers)

    def random(self, size):
        return self.numbers[:size]


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    problem = DecisionProblem(
        rng.random((6, 3)),
        np.full(6, 1 / 6),
        Sensitive((2, 3), (0,)),
        ["none", "syrup", "pill"],
        records=SPACE,
        outcomes={"death": rng.random((6, 3))},
        admissible=ALLOWED,
    )
    return make_policy("exponential", epsilon=2).fit(problem)


@pytest.fixture(scope="module")
def numbered():
    return make_policy("exponential", epsilon=1).fit(DecisionProblem(np.eye(4, 2), np.full(4, 0.25), AnyRecord()))


@pytest.mark.parametrize("name", ["exponential", "exponential-fitted", "greedy"])
def test_table_loss_value_and_outcomes_are_those_of_their_definitions(random_problems, name):
    for case in random_problems[::7]:
        problem, policy = case.problem, make_policy(name, epsilon=case.epsilon)
        fitted = policy.fit(problem)
        table = fitted.probabilities
        assert np.array_equal(table, policy.probabilities(problem))
        assert fitted.problem is problem and fitted.policy is policy
        pairs = neighbour_pairs(problem.adjacency, problem.n_records)
        assert fitted.epsilon_spent == pytest.approx(loss_by_pairs(table, pairs), rel=1e-9, abs=1e-12)
        mass = problem.prior[:, None] * table
        assert fitted.value == pytest.approx((mass * problem.utilities).sum(), rel=1e-12)
        assert problem.value(fitted) == fitted.value
        assert fitted.expected == pytest.approx({k: (mass * v).sum() for k, v in problem.outcomes.items()}, rel=1e-12)
        if problem.admissible is not None:
            assert not table[~problem.admissible].any()


def test_nothing_of_it_can_be_changed(fitted):
    for copied in (fitted, pickle.loads(pickle.dumps(fitted))):
        with pytest.raises(ValueError, match="read-only"):
            copied.probabilities[0, 0] = 1
        with pytest.raises(TypeError, match="does not support item assignment"):
            copied.expected["death"] = 0
    with pytest.raises(ValueError, match="field probabilities is declared with init=False"):
        replace(fitted, probabilities=fitted.probabilities)
    other = replace(fitted, policy=make_policy("uniform"))
    assert other.probabilities[0].tolist() == [0.5, 0.5, 0] and other.epsilon_spent == 0


def test_rows_of_a_table_and_observations_are_the_same_records(fitted):
    assert np.array_equal(fitted.predict_proba(FRAME), fitted.probabilities[RECORDS])
    # As an environment of several days gives them, the last column is the day.
    for codes in (CODES, np.array(CODES, dtype=np.int16), [[*row, day] for day, row in enumerate(CODES)]):
        assert np.array_equal(fitted.predict_proba(codes), fitted.probabilities[RECORDS])
    every = fitted.problem.decode(range(6))
    assert np.array_equal(fitted.predict_proba(every), fitted.probabilities)
    assert fitted.predict_proba(FRAME[:0]).shape == (0, 3)


def test_rows_of_a_table_of_ones_own_are_found_whatever_their_order():
    index = pd.MultiIndex.from_tuples([("b", 1), ("a", 1), ("b", 0)], names=["site", "ill"])
    problem = DecisionProblem(pd.DataFrame({"wait": [0.0, 1, 2], "treat": 1.0}, index), np.full(3, 1 / 3), AnyRecord())
    fitted = make_policy("exponential", epsilon=1).fit(problem)
    assert np.array_equal(fitted.predict_proba([[0, 1], [1, 0], [0, 0]]), fitted.probabilities[[2, 1, 0]])
    with pytest.raises(ValueError, match="row 1: the problem has no record with the levels 1, 1"):
        fitted.predict_proba([[0, 1], [1, 1]])


def test_what_is_drawn_are_the_probabilities(fitted):
    n = 100_000
    uniform = Given(*(np.arange(n) + 0.5) / n)
    for record, codes in enumerate(SPACE.codes(range(6))):
        actions = fitted.act(np.tile(codes, (n, 1)), uniform)
        assert np.abs(np.bincount(actions, minlength=3) - n * fitted.probabilities[record]).max() <= 1
        names = fitted.sample(fitted.problem.decode([record] * n), uniform)
        assert names.tolist() == np.array(fitted.problem.actions)[actions].tolist()


def test_it_stands_in_comparisons_and_reports_for_its_policy(fitted):
    problem, policy = fitted.problem, fitted.policy
    pd.testing.assert_frame_equal(
        ps.compare(problem, policies=[fitted, "uniform"], epsilons=[0.5, 2.0]),
        ps.compare(problem, policies=[policy, "uniform"], epsilons=[0.5, 2.0]),
    )
    found = ps.report(problem, policies=[fitted], epsilons=2.0).tables["comparison"]
    assert found.loc[found["policy"] == "exponential", "value"].tolist() == pytest.approx([fitted.value])


def test_no_number_draws_what_is_not_allowed(fitted):
    least, most = 0.0, np.nextafter(1, 0)
    first = replace(fitted, problem=replace(fitted.problem, admissible=ALLOWED[:, ::-1]))
    assert {fitted.act([0, 0], Given(u)) for u in (least, most)} == {0, 1}
    assert {first.act([1, 0], Given(u)) for u in (least, most)} == {1, 2}


def test_a_batch_draws_what_its_rows_draw_one_by_one(fitted, numbered):
    codes = np.random.default_rng(3).integers([2, 3], size=(200, 2))
    for policy, observations in ((fitted, codes), (numbered, np.arange(200) % 4)):
        one_by_one, batch = np.random.default_rng(4), np.random.default_rng(4)
        singles = [policy.act(observation, one_by_one) for observation in observations]
        assert {type(action) for action in singles} == {int}
        together = policy.act(observations, batch)
        assert together.shape == (200,) and together.tolist() == singles


@pytest.mark.parametrize(
    ("observations", "message"),
    [
        (
            [[0, 1], [0, 3], [-1, 0]],
            r"^row 1: the problem has no record with the levels 0, 3\nrow 2: the problem has no record .* -1, 0$",
        ),
        ([[9, 9]] * 30, r"(?s)row 0: .*\.\.\. and 10 more$"),
        ([[0]], r"observations must be whole numbers, \(m, 2\): .*\(fever, age\), got int64 of shape \(1, 1\)"),
        ([[0.0, 1.0]], r"got float64 of shape \(1, 2\)"),
        ([["old", "1"]], "got <U3"),
        (pd.DataFrame({"fever": [0, 3], "age": "old"}), "row 1: fever: must be one of 0, 1, got 3"),
        (pd.DataFrame({"fever": [0]}), "frame has no column age"),
    ],
)
def test_what_is_no_record_is_refused_by_its_row(fitted, observations, message):
    with pytest.raises(ValueError, match=message):
        fitted.predict_proba(observations)


def test_observations_of_records_without_features_are_their_numbers(numbered):
    assert np.array_equal(numbered.predict_proba([3, 0]), numbered.probabilities[[3, 0]])
    assert np.array_equal(numbered.predict_proba(pd.DataFrame({"record": [3, 0]})), numbered.probabilities[[3, 0]])
    for wrong, message in (
        ([1, 4], r"indices must be from 0 to 3, got indices\[1\]=4"),
        ([[1]], r"indices must be whole numbers, \(m,\), got int64 of shape \(1, 1\)"),
    ):
        with pytest.raises(ValueError, match=message):
            numbered.act(wrong, np.random.default_rng(0))


@dataclass(frozen=True)
class Wrong(Policy):
    """Somebody else's, with a fault."""

    name = "wrong"
    factor: float = 1.0
    columns: int = 2

    def _log_probabilities(self, problem):
        return np.full((problem.n_records, self.columns), np.log(self.factor / self.columns))


@dataclass(frozen=True)
class Another(Wrong):
    """Its probabilities are not those of its logarithms."""

    def _log_probabilities(self, problem):
        return super()._log_probabilities(problem)

    def _tables(self, problem):
        return self._log_probabilities(problem), np.eye(2)[[0] * problem.n_records]


def test_a_mechanism_that_gives_no_probabilities_is_refused(numbered):
    assert Wrong().fit(numbered.problem).epsilon_spent == 0
    for policy, message in (
        (Wrong(factor=1.1), r"wrong at ε = inf gives no table of probabilities: its probabilities sum to 1.1 for \["),
        (Wrong(columns=3), r"its table has shape \(4, 3\) instead of \(4, 2\)"),
        (Another(), "its probabilities are not those of its logarithms"),
    ):
        with pytest.raises(ValueError, match=message):
            policy.fit(numbered.problem)


@pytest.mark.parametrize(
    ("adjacency", "hidden"),
    [
        (AnyRecord(), "each patient's whole record (adjacency any-record)"),
        (OneFeature((2, 3)), "each single feature of a patient's record (adjacency one-feature)"),
        (Sensitive((2, 3), (1,)), "age of each patient's record (adjacency sensitive)"),
    ],
)
def test_it_says_who_is_protected_from_whom_and_who_is_not(adjacency, hidden):
    problem = DecisionProblem(np.arange(12.0).reshape(6, 2), np.full(6, 1 / 6), adjacency, records=SPACE)
    fitted = make_policy("uniform").fit(problem)
    for words in (repr(fitted), re.sub("<[^>]*>", " ", fitted._repr_html_()).replace("&#x27;", "'")):
        for wanted in ("uniform", hidden, "anyone who sees the treatment", "the model was fitted to", "spent"):
            assert wanted in words
    assert "epsilon spent 0)" in repr(fitted)
    # Rows of 0, 1; 2, 3; ... 10, 11: the second action is better by one for each, and so for all.
    cells = re.sub("<[^>]*>", " ", fitted._repr_html_()).split()
    text = " ".join(cells)
    assert "value 5.5 " in text and "for each 6 " in text and "for all 6" in text
    assert isinstance(fitted, ps.FittedPolicy)
