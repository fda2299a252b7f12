"""Private policies of anybody's Q-values, against exact losses over all pairs."""

from dataclasses import replace
from types import SimpleNamespace

import gymnasium
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_agents import RECORDED, RecordedPolicy, Tensor, recorded_agent
from sklearn.linear_model import LinearRegression, LogisticRegression
from small_processes import loss_of, random_arrays

import policysim as ps
from policies import AnyRecord, DecisionProblem, Sensitive, make_policy
from policies.exponential import ExponentialFitted
from policies.private_model import FOR_MODELS, privatize_policy
from policysim.course.planning import plan, policy_value
from policysim.course.tabular import TabularMDP

Q = np.random.default_rng(0).normal(size=(6, 3)).cumsum(axis=0)


def bounds_of(name, low=-3.0, high=3.0):
    """What a mechanism needs to know of the scores of a function."""
    return {"lower": low, "upper": high} if name == "exponential" else {}


def test_a_table_of_states_is_a_function_of_their_numbers():
    private, function = privatize_policy(Q, 0.8), privatize_policy(lambda states: Q[states], 0.8)
    assert (private.predict_proba(range(6)) == function.predict_proba(range(6))).all()
    assert (private.predict_proba([4, 4, 0]) == private.predict_proba(range(6))[[4, 4, 0]]).all()
    problem = DecisionProblem(Q, np.full(6, 1 / 6), AnyRecord())
    assert (private.probabilities(problem) == private.predict_proba(range(6))).all()
    fitted = privatize_policy(Q, 0.8, sample=Q)
    assert fitted.probabilities(problem) == pytest.approx(
        make_policy("exponential-fitted", epsilon=0.8).probabilities(problem)
    )


def joint_loss(tables):
    """What the draws for all rows of one table reveal together against those of another one."""
    with np.errstate(divide="ignore"):
        return np.abs(np.log(tables[0]) - np.log(tables[1])).max(axis=1).sum()


def test_a_table_of_some_patients_is_fitted_to_none_of_them():
    # Once a table was a box fitted to all of its rows, the patients of today: one of them changed the rows of all.
    rows = np.array([[0.0, 1.0]] * 17 + [[1.0, 0.0]] * 43)
    today, other = rows, np.where(np.arange(60)[:, None] == 16, rows[::-1], rows)
    tables = [privatize_policy(scores, 1.0).predict_proba(range(60)) for scores in (today, other)]
    assert joint_loss(tables) == pytest.approx(1.0)
    # The planted fault: the box is that of the rows themselves. With 16 of 60 it holds one action alone.
    wrong = [privatize_policy(scores, 1.0, sample=scores).predict_proba(range(60)) for scores in (today, other)]
    assert joint_loss(wrong) == np.inf
    problem = DecisionProblem(Q, np.full(6, 1 / 6), AnyRecord())
    with pytest.raises(
        ValueError, match=r"each of the 6 records, got 60 rows: give the model itself, privatize_policy\(model"
    ):
        privatize_policy(today, 1.0).fit(problem)


def test_a_plan_goes_straight_in_and_its_probabilities_straight_back():
    moves, rewards, initial, last = random_arrays(np.random.default_rng(1), 4, 3, ends=0.2)
    mask = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1]], dtype=bool)
    mdp = TabularMDP(moves, rewards, initial, ends=last, admissible=mask, mask_public=True)
    q_values = plan(mdp).q_values
    table = privatize_policy(q_values, 1.0, mask_public=True).predict_proba(range(4))
    assert (table[:2, 2] == 0).all()
    assert policy_value(mdp, table) < plan(mdp).value
    for rows in ([0, 1], [2, 3]):
        assert loss_of(table[rows][:, mask[rows[0]]]) <= 1 + 1e-12
    with pytest.raises(ValueError, match="declare mask_public=True"):
        privatize_policy(q_values, 1.0).predict_proba(range(4))


def adversarial(n_actions, n_rows, seed):
    """Scores with NaN, infinities, ties, and magnitudes from 1e-300 to 1e308."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_rows, n_actions)) * 10.0 ** rng.uniform(-300, 307, size=(n_rows, 1))
    scores[::3] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1e308, -1e308], size=scores[::3].shape)
    scores[::7] = np.round(rng.normal(size=scores[::7].shape))
    return scores


@pytest.mark.parametrize("name", FOR_MODELS)
@given(epsilon=st.floats(0, 20), n_actions=st.integers(2, 5), low=st.floats(-50, 50), width=st.floats(0.01, 100))
def test_no_two_observations_are_told_apart_by_more_than_epsilon(name, epsilon, n_actions, low, width):
    network = privatize_policy(np.asarray, epsilon, policy=name, **bounds_of(name, low, low + width))
    corners = np.array(np.meshgrid(*[[low, low + width]] * n_actions)).reshape(n_actions, -1).T
    scores = np.concatenate([corners, adversarial(n_actions, 30, seed=0)])
    assert loss_of(network.predict_proba(scores)) <= epsilon * (1 + 1e-9) + 1e-9


def test_nan_is_the_worst_and_infinite_scores_of_one_sign_are_ties():
    nan, inf = np.nan, np.inf
    rows = [[nan, 0.0, 1.0], [-inf, -inf, 1.0], [nan, nan, nan], [inf, inf, 3.0], [nan, -inf, nan], [nan, -inf, -1e308]]
    q = 1 / (np.e + 2)
    shared = (1 - q) / 2
    expected = [[q, q, np.e * q], [q, q, np.e * q], [1 / 3] * 3, [shared, shared, q], [1 / 3] * 3, [q, q, np.e * q]]
    assert privatize_policy(np.asarray, 1.0).predict_proba(rows) == pytest.approx(np.array(expected), abs=1e-15)
    # The textbook clips them; randomised response answers the first of equals.
    clipped = privatize_policy(np.asarray, 1.0, policy="exponential", lower=-1, upper=1).predict_proba(rows)
    weights = np.exp(np.clip(np.nan_to_num(rows, nan=-1, posinf=1, neginf=-1), -1, 1) / 4)
    assert clipped == pytest.approx(weights / weights.sum(axis=1, keepdims=True), abs=1e-15)
    first = privatize_policy(np.asarray, 1.0, policy="randomized-response").predict_proba(rows)
    assert first.argmax(axis=1).tolist() == [2, 2, 0, 0, 0, 2]
    assert np.sort(first, axis=1) == pytest.approx(np.tile([q, q, np.e * q], (6, 1)), abs=1e-15)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 20.0, np.inf])
def test_a_sample_gives_the_box_of_the_problem_that_it_is(epsilon):
    rng = np.random.default_rng(2)
    sample = rng.normal(size=(60, 4)) * [0.1, 1.0, 1.0, 3.0]
    problem = DecisionProblem(sample, np.full(60, 1 / 60), AnyRecord())
    network = privatize_policy(np.asarray, epsilon, sample=sample)
    table = network.predict_proba(sample)
    assert table == pytest.approx(make_policy("exponential-fitted", epsilon=epsilon).probabilities(problem), abs=1e-14)
    # New observations of the same kind are in the same box.
    assert loss_of(np.concatenate([table, network.predict_proba(rng.normal(size=(500, 4)) * 5)])) <= epsilon + 1e-12
    limit = problem.value(make_policy("optimal", epsilon=epsilon).probabilities(problem))
    constant, best = problem.fixed_values.max(), problem.value(make_policy("greedy").probabilities(problem))
    assert constant + 0.98 * (limit - constant) - 1e-12 <= problem.value(table) <= limit + 1e-9 * (best - constant)


def test_a_row_does_not_depend_on_what_stands_beside_it():
    for name in FOR_MODELS:
        network = privatize_policy(np.asarray, 1.0, policy=name, **bounds_of(name))
        together = network.predict_proba(Q)
        assert all((network.predict_proba(Q[i : i + 1])[0] == together[i]).all() for i in range(len(Q)))


def test_a_mask_leaves_the_box_of_the_actions_that_are_allowed():
    mask = np.array([[True, True, False], [False, True, True], [False, True, False]] * 2)
    sample = np.random.default_rng(3).normal(size=(40, 3))
    fitted = privatize_policy(np.asarray, 1.0, sample=sample, mask_public=True).predict_proba(Q, admissible=mask)
    for columns, rows in (([0, 1], [0, 3]), ([1, 2], [1, 4])):
        alone = privatize_policy(np.asarray, 1.0, sample=sample[:, columns])
        assert fitted[np.ix_(rows, columns)] == pytest.approx(alone.predict_proba(Q[np.ix_(rows, columns)]), abs=1e-15)
    # Floors that are given still sum to what they did: 0.3 and 0.2 of 0.6 become 0.36 and 0.24.
    given = privatize_policy(np.asarray, 1.0, floors=[0.3, 0.2, 0.1], mask_public=True)
    table = given.predict_proba([[1.0, 0.0, 9.0], [0.0, 1.0, 9.0]], admissible=mask[[0, 0]])
    assert table == pytest.approx(np.array([[0.76, 0.24, 0.0], [0.36, 0.64, 0.0]]), abs=1e-6)
    refused = privatize_policy(np.asarray, 1.0, floors=[0.0, 0.0, 0.5], mask_public=True)
    with pytest.raises(ValueError, match=r"floors must allow an action wherever records do, got none of \[0, 1\]"):
        refused.predict_proba(Q, admissible=mask)


def test_no_privacy_is_greedy_and_no_epsilon_is_uniform():
    for name in FOR_MODELS:
        free = privatize_policy(np.asarray, np.inf, policy=name, **bounds_of(name, -9, 9)).predict_proba(Q)
        assert (free == np.eye(3)[Q.argmax(axis=1)]).all()
        none = privatize_policy(np.asarray, 0.0, policy=name, **bounds_of(name, -9, 9)).predict_proba(Q)
        assert none == pytest.approx(np.full((6, 3), 1 / 3))


def test_actions_are_drawn_with_their_probabilities():
    rng = np.random.default_rng(0)
    private = privatize_policy(Q, 2.0)
    actions, p = private.act(np.full(40_000, 2), rng), private.predict_proba([2])[0]
    frequencies = np.bincount(actions, minlength=3) / len(actions)
    # five standard errors
    assert (np.abs(frequencies - p) <= 5 * np.sqrt(p * (1 - p) / len(actions))).all()
    assert isinstance(private.act(2, rng), int)
    assert private.act([2], rng).shape == (1,)


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (Q[0], {}, r"a table of scores, \(S, A\) with A >= 2, got an array of shape \(3,\)"),
        (LogisticRegression(), {}, r"model must be fitted: LogisticRegression has no classes_, call fit\(X, y\) first"),
        (LinearRegression(), {}, "LinearRegression has no predict_proba: give a function from rows to scores"),
        (np.asarray, {"bounds": "simplex"}, "bounds is for exponential, got policy='exponential-fitted'"),
        (np.asarray, {"policy": "exponential", "bounds": "box"}, "bounds must be \"simplex\", .*, got bounds='box'"),
        (np.asarray, {"name": "Mine"}, "name must be lower-case letters and digits .*, got name='Mine'"),
        (Q, {"floors": DecisionProblem(Q, np.full(6, 1 / 6), AnyRecord()), "sample": Q}, "floors=problem or sample="),
        (Q, {"epsilon": -1.0}, "epsilon must be >= 0, got epsilon=-1.0"),
        (np.asarray, {"policy": "exponential"}, "bounds of the scores, .*, got lower=None, upper=None"),
        (np.asarray, {"policy": "permute-and-flip"}, "for a model, got policy='permute"),
        (np.asarray, {"floors": [0.5, -0.1, 0.1]}, "floors must be one number >= 0 for each action"),
        (np.asarray, {"floors": [0.1, 0.1, 0.1]}, r"at least e\^-epsilon = 0.367879 .*, got a sum of 0.3\."),
        (np.asarray, {"sample": [[0.0, np.nan]]}, r"sample must be finite, got sample\[0, 1\]=nan"),
    ],
)
def test_bad_input_is_refused(given, options, message):
    with pytest.raises(ValueError, match=message):
        privatize_policy(given, **{"epsilon": 1.0, **options})


@pytest.mark.parametrize(
    ("options", "scores", "message"),
    [
        ({}, [1.0, 2.0], r"shape \(2,\)"),
        ({}, [[1.0], [2.0]], r"shape \(2, 1\)"),
        ({"floors": [0.5, 0.2, 0.1]}, [[1.0, 2.0]], "floors must have 2 numbers, one for each action, got 3"),
        ({"sample": Q}, [[1.0, 2.0]], "sample must have 2 columns, one for each action, got 3"),
    ],
)
def test_scores_of_another_shape_are_refused(options, scores, message):
    with pytest.raises(ValueError, match=message):
        privatize_policy(lambda _: scores, 1.0, **options).predict_proba(None)


# Modules.


class Linear:
    """A module of torch: scores from a tensor of its own type only, with a gradient."""

    def __init__(self, weights):
        self.weights, self.training = Tensor(np.asarray(weights, dtype=np.float32)), True

    def parameters(self):
        return iter([self.weights])

    def eval(self):
        self.training = False
        return self

    def __call__(self, batch):
        assert isinstance(batch, Tensor) and batch.data.dtype == np.float32
        return Tensor(batch.data @ self.weights.data)


WEIGHTS = [[1.0, -1.0, 0.5], [0.25, 2.0, -3.0]]
BATCH = [[1.0, 0.5], [0.0, 1.0], [-2.0, 0.25]]


@pytest.mark.parametrize("name", FOR_MODELS)
def test_a_module_is_given_tensors_and_scores_as_its_arrays_would(name):
    module = Linear(WEIGHTS).eval()
    private = privatize_policy(module, 1.0, policy=name, **bounds_of(name))
    arrays = privatize_policy(
        lambda batch: np.asarray(batch) @ np.asarray(WEIGHTS), 1.0, policy=name, **bounds_of(name)
    )
    expected = arrays.predict_proba(BATCH)
    assert private.predict_proba(BATCH) == pytest.approx(expected, rel=1e-6)
    assert private.predict_proba(Tensor(np.asarray(BATCH, dtype=np.float32))) == pytest.approx(expected, rel=1e-6)


def test_modules_in_training_or_that_are_not_finite_are_refused_in_one_line():
    module = Linear(WEIGHTS)
    with pytest.raises(ValueError, match=r"^model is in training mode, .*: call model.eval\(\) first.$"):
        privatize_policy(module, 1.0)
    private = privatize_policy(module.eval(), 1.0)
    module.training = True
    with pytest.raises(ValueError, match="is in training mode"):
        private.predict_proba(BATCH)
    with pytest.raises(
        ValueError, match=r"^model must be finite, got a module with parameters that are infinite or NaN.$"
    ):
        privatize_policy(Linear([[np.nan, 1.0]]).eval(), 1.0)


# Probabilities, and the boxes of the textbook's mechanism.


@pytest.mark.parametrize("n_actions", [2, 3, 4])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.5, 1.0, 8.0, 700.0])
def test_the_scale_for_probabilities_spends_epsilon_and_no_more(epsilon, n_actions):
    private = privatize_policy(np.asarray, epsilon, policy="exponential", bounds="simplex")
    corners = np.concatenate([np.eye(n_actions), np.zeros((1, n_actions))])
    inside = np.random.default_rng(0).dirichlet(np.full(n_actions, 0.3), size=500)
    table = private.predict_proba(np.concatenate([corners, inside]))
    assert loss_of(table) == pytest.approx(epsilon, abs=1e-12, rel=1e-12)
    # Between the corners there is all of it: the proof's floor and ceiling are attained.
    assert loss_of(table[:n_actions]) == pytest.approx(epsilon, abs=1e-12, rel=1e-12)
    ordinary = np.exp(epsilon * inside)
    assert table[n_actions + 1 :] == pytest.approx(ordinary / ordinary.sum(axis=1, keepdims=True), rel=1e-9)


def test_what_is_no_probability_is_private_as_well():
    private = privatize_policy(np.asarray, 1.0, policy="exponential", bounds="simplex", mask_public=True)
    rows = adversarial(3, 3000, seed=2)
    assert loss_of(private.predict_proba(rows)) <= 1 + 1e-12
    twice = [[np.nan, -1.0, 0.5], [0.0, 0.0, 0.5], [2.0, 2.0, 4.0], [1 / 3, 1 / 3, 1 / 3]]
    table = private.predict_proba(twice)
    assert (table[0] == table[1]).all() and (table[2] == table[3]).all()
    # A planted fault: the textbook's formula without the clip.
    wrong = np.exp([[-0.5, 0.5, 1.0], [1.0, 0.5, -0.5]])
    assert loss_of(wrong / wrong.sum(axis=1, keepdims=True)) > 1.1
    mask = np.tile([[True, False, True]], (len(rows), 1))
    assert loss_of(private.predict_proba(rows, admissible=mask)[:, [0, 2]]) <= 1 + 1e-12


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"policy": "randomized-response"},
        {"policy": "exponential", "bounds": "simplex"},
        {"policy": "exponential", "lower": 0.0, "upper": 1.0},
        {"floors": [0.3, 0.1, 0.2]},
        {"floors": [0.3, 0.0, 0.4], "sharpness": 0.7},
        {"sharpness": 1e-3},
        {"sample": np.random.default_rng(5).normal(size=(50, 3))},
    ],
)
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0, 60.0])
def test_rows_of_every_mechanism_lie_in_its_box(epsilon, options):
    if "floors" in options and epsilon == 0.0:
        options = {**options, "floors": [0.5, 0.2, 0.3]}
    private = privatize_policy(np.asarray, epsilon, **options)
    box = private.box(np.arange(3), 3)
    rows = private.predict_proba(np.concatenate([adversarial(3, 2000, seed=3), np.eye(3)]))
    assert rows.sum(axis=1) == pytest.approx(np.ones(2003), abs=1e-12)
    with np.errstate(divide="ignore"):
        logs = np.log(rows)
    assert box.epsilon <= epsilon
    assert (logs >= box.log_floors.T - 1e-9).all() and (logs <= box.log_floors.T + box.epsilon + 1e-9).all()
    assert (
        np.logaddexp.reduce(box.log_floors[:, 0]) <= 1e-9 <= np.logaddexp.reduce(box.log_floors[:, 0]) + epsilon + 2e-9
    )


# Classifiers, and problems.

AGES, DRUGS = ["young", "middle", "old"], ["wait", "pill", "drip"]


def ward():
    """Six records of two features, and three treatments."""
    index = pd.MultiIndex.from_product([AGES, [0, 1]], names=["age", "fever"])
    utilities = pd.DataFrame(np.random.default_rng(6).normal(size=(6, 3)), index=index, columns=DRUGS)
    return DecisionProblem(utilities, np.full(6, 1 / 6), AnyRecord())


class Frequencies:
    """A classifier that has learnt a table of all records."""

    def __init__(self, known):
        self.classes_, self.feature_names_in_ = np.array(sorted(known)), np.array(["fever", "age"], dtype=object)
        self.table = np.random.default_rng(7).dirichlet(np.ones(len(known)), size=(2, 3))

    def predict_proba(self, frame):
        assert list(frame.columns) == ["fever", "age"]
        return self.table[frame["fever"].to_numpy(), [AGES.index(age) for age in frame["age"]]]


def test_classes_are_treatments_by_their_names_in_any_order():
    problem, model = ward(), Frequencies(DRUGS)
    assert model.classes_.tolist() == ["drip", "pill", "wait"]
    scores = model.predict_proba(problem.decode(range(6))[["fever", "age"]])
    for private in (privatize_policy(model, 1.0), privatize_policy(model.predict_proba, 1.0)):
        table = private.probabilities(problem)
        assert (table.argmax(axis=1) == (2 - scores.argmax(axis=1))).all()
        assert table[:, ::-1] == pytest.approx(private.predict_proba(problem.decode(range(6))[["fever", "age"]]), abs=0)
    fitted = privatize_policy(model, 1.0).fit(problem)
    assert fitted.epsilon_spent == pytest.approx(1.0, abs=1e-12)
    best = problem.utilities[np.arange(6), table.argmax(axis=1)]
    q = 1 / (np.e + 2)
    assert fitted.value == pytest.approx(np.mean(q * problem.utilities.sum(axis=1) + (np.e - 1) * q * best))
    with pytest.raises(ValueError, match=r"a classifier names treatments: fit\(problem\).act"):
        privatize_policy(model, 1.0).act(problem.decode([0]), np.random.default_rng(0))


def test_floors_and_sample_follow_the_classes_into_the_problem():
    problem, model = ward(), Frequencies(DRUGS)
    floors = {"drip": 0.1, "pill": 0.2, "wait": 0.3}
    table = privatize_policy(model, 1.0, floors=[floors[name] for name in model.classes_]).probabilities(problem)
    assert (table >= [floors[name] - 1e-6 for name in DRUGS]).all()
    sample = np.random.default_rng(1).normal(size=(40, 3)) * [1.0, 2.0, 3.0]
    private = privatize_policy(model, 1.0, sample=sample)
    rows = private.predict_proba(problem.decode(range(6))[["fever", "age"]])
    assert private.probabilities(problem)[:, ::-1] == pytest.approx(rows, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0, np.inf])
def test_floors_of_a_problem_are_those_of_the_fitted_mechanism(epsilon):
    rng = np.random.default_rng(8)
    problem = DecisionProblem(rng.normal(size=(40, 4)) * [1, 1, 5, 1], rng.dirichlet(np.ones(40)), AnyRecord())
    best = privatize_policy(problem.utilities, epsilon, floors=problem)
    wanted = ExponentialFitted(epsilon, sharpness=np.inf).probabilities(problem)
    assert best.probabilities(problem) == pytest.approx(wanted, abs=1e-6)
    model = privatize_policy(lambda rows: rows, 1.0, floors=problem)
    logs = np.log(replace(model, epsilon=epsilon).predict_proba(adversarial(4, 2000, seed=5)).clip(1e-300))
    assert np.ptp(logs, axis=0).max() <= epsilon + 1e-9


def test_floors_of_a_problem_follow_the_names_of_classes():
    problem, model = ward(), Frequencies(DRUGS)
    private = privatize_policy(model, 1.0, floors=problem)
    rows = private.predict_proba(problem.decode(range(6))[["fever", "age"]])
    assert private.probabilities(problem)[:, ::-1] == pytest.approx(rows, abs=1e-12)
    floors = dict(zip(model.classes_, np.exp(private.box(np.arange(3), 3).log_floors[:, 0]), strict=True))
    ((_, _, box),) = ExponentialFitted(1.0).boxes(problem)
    assert [floors[name] for name in DRUGS] == pytest.approx(np.exp(box.log_floors[:, 0]), abs=1e-5)
    best = model.table[[0, 1] * 3, [0, 0, 1, 1, 2, 2]].argmax(axis=1)
    assert (replace(private, epsilon=np.inf).probabilities(problem)[:, ::-1] == np.eye(3)[best]).all()


def test_floors_of_a_problem_are_the_best_among_what_records_allow():
    problem = ward()
    mask = np.ones((6, 3), dtype=bool)
    mask[:2, 0] = False
    utilities = np.array([[9.0, 1.0, 0.0], [9.0, 0.0, 1.0]] * 3)
    masked = DecisionProblem(
        utilities, problem.prior, Sensitive((3, 2), (1,)), DRUGS, records=problem.records, admissible=mask
    )
    table = privatize_policy(Frequencies(DRUGS), 1.0, floors=masked).probabilities(masked)
    # The first treatment is the best for all who may get it; of the others each is the best for half.
    assert (table[2:] == [1, 0, 0]).all() and (table[:2, 0] == 0).all()
    assert np.sort(table[:2, 1:], axis=1) == pytest.approx(np.tile(np.array([1, np.e]) / (np.e + 1), (2, 1)), abs=1e-6)
    with pytest.raises(ValueError, match="with the actions a, b, c: the actions of this one are wait, pill, drip"):
        other = DecisionProblem(utilities, problem.prior, AnyRecord(), ["a", "b", "c"])
        privatize_policy(lambda codes: np.ones((len(codes), 3)), 1.0, floors=other).fit(problem)


def test_a_treatment_that_the_model_never_saw_has_the_worst_score_and_an_unknown_class_is_refused_by_name():
    problem = ward()
    q = 1 / (np.e + 2)
    assert privatize_policy(Frequencies(["drip", "wait"]), 1.0).probabilities(problem)[:, 1] == pytest.approx(q)
    textbook = privatize_policy(Frequencies(["drip", "wait"]), 1.0, policy="exponential", bounds="simplex")
    assert (textbook.probabilities(problem)[:, 1] <= textbook.probabilities(problem).min(axis=1) + 1e-15).all()
    for declared, message in (({"floors": [0.3, 0.3]}, "floors must have 3 numbers"), ({"sample": np.eye(2)}, "3 col")):
        with pytest.raises(ValueError, match=message):
            privatize_policy(Frequencies(["drip", "wait"]), 1.0, **declared).fit(problem)
    with pytest.raises(ValueError, match=r"a class 'syrup', which is no treatment .*; known: wait, pill, drip"):
        privatize_policy(Frequencies(["syrup", "wait"]), 1.0).probabilities(problem)
    model = Frequencies(DRUGS)
    model.feature_names_in_ = ["age", "bmi"]
    with pytest.raises(ValueError, match="fitted to 'bmi', which the records do not have; features: age, fever"):
        privatize_policy(model, 1.0).probabilities(problem)


def test_numbers_are_treatments_by_their_numbers_unless_they_are_names():
    frame = pd.DataFrame(np.eye(3), index=pd.Index([5, 6, 7], name="x"), columns=["a", "b", "c"])
    named = DecisionProblem(frame, np.full(3, 1 / 3), AnyRecord())
    numbered = DecisionProblem(frame.set_axis(["2", "1", "0"], axis=1), np.full(3, 1 / 3), AnyRecord())
    model = LogisticRegression(C=1e6).fit(named.decode(range(3)), [0, 1, 2])
    private = privatize_policy(model, 1.0)
    assert private.probabilities(named).argmax(axis=1).tolist() == [0, 1, 2]
    assert private.probabilities(numbered).argmax(axis=1).tolist() == [2, 1, 0]
    unnamed = LogisticRegression(C=1e6).fit(named.decode(range(3)).to_numpy(), [0, 1, 2])
    assert (privatize_policy(unnamed, 1.0).probabilities(named) == private.probabilities(named)).all()


def test_a_mask_of_a_problem_is_kept_and_a_function_is_asked_by_level_codes():
    problem = ward()
    mask = np.ones((6, 3), dtype=bool)
    mask[:2, 1] = mask[4:, 0] = False
    masked = DecisionProblem(
        problem.utilities, problem.prior, Sensitive((3, 2), (1,)), DRUGS, records=problem.records, admissible=mask
    )
    asked = []

    def scores(codes):
        asked.append(codes)
        return codes @ [[1.0, 0.0, 3.0], [0.0, 5.0, 0.0]]

    table = privatize_policy(scores, 1.0).probabilities(masked)
    assert asked[0].tolist() == [[age, fever] for age in range(3) for fever in range(2)]
    assert (table[~mask] == 0).all() and table.sum(axis=1) == pytest.approx(np.ones(6))
    assert table[3] == pytest.approx(np.array([1.0, np.e, 1.0]) / (np.e + 2))
    assert table[5] == pytest.approx(np.array([0.0, 1.0, np.e]) / (np.e + 1))
    with pytest.raises(ValueError, match=r"must score 3 actions \(wait, pill, drip\) .*returned shape \(6, 2\)"):
        privatize_policy(lambda codes: np.ones((len(codes), 2)), 1.0).probabilities(problem)


def test_a_private_model_stands_in_a_comparison_beside_others():
    problem = ward()
    model = Frequencies(DRUGS)
    policies = [
        privatize_policy(model, 1.0),
        privatize_policy(model, 1.0, policy="exponential", bounds="simplex", name="of-the-textbook"),
    ]
    table = ps.compare(problem, policies=[*policies, "exponential-fitted"], epsilons=[0.5, 2.0])
    for policy in policies:
        for epsilon in (0.5, 2.0):
            row = table[(table["policy"] == policy.name) & (table["epsilon"] == epsilon)].iloc[0]
            assert row["value"] == pytest.approx(replace(policy, epsilon=epsilon).fit(problem).value)
            assert row["epsilon_spent"] <= row["guarantee"] + 1e-12 == epsilon + 1e-12
    assert replace(policies[0], epsilon=2.0) == replace(policies[0], epsilon=2.0) != policies[0]
    report = ps.report(problem, policies=[policies[0], "exponential"], epsilons=[1.0])
    assert "private-model" in set(report.tables["comparison"]["policy"])


def test_a_model_that_looks_at_the_others_of_a_batch_is_refused():
    problem, rng = ward(), np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"scores \[age old, fever 1\] \[.*\] alone and \[.*\] beside others"):
        privatize_policy(lambda codes: (codes @ np.eye(2, 3)) - codes.mean(), 1.0).fit(problem)
    with pytest.raises(ValueError, match="must score each record by itself"):
        privatize_policy(lambda codes: rng.normal(size=(len(codes), 3)), 1.0).fit(problem)
    strange = privatize_policy(lambda codes: np.where(codes[:, :1] == 2, np.nan, [[np.inf, -np.inf, 1.0]]), 1.0)
    assert strange.fit(problem).epsilon_spent <= 1 + 1e-12


# Agents.


@pytest.mark.parametrize("name", ["PPO", "DQN"])
def test_an_agent_is_asked_as_it_was_when_it_was_recorded(name):
    private = privatize_policy(recorded_agent(name), 1.0)
    codes = np.array(RECORDED["codes"])
    assert private.predict_proba(codes) == pytest.approx(np.array(RECORDED[name]["private"]), abs=1e-12)
    problem = ps.build_problem(ps.load_study("examples/ward/study.toml"))
    assert private.probabilities(problem) == pytest.approx(np.array(RECORDED[name]["private"]), abs=1e-12)
    rng, other = np.random.default_rng(3), np.random.default_rng(3)
    alone = [private.act(row, rng) for row in codes]
    assert alone == private.act(codes, other).tolist() and isinstance(alone[0], int)
    with pytest.raises(ValueError, match=r"observations of shape \(5,\), got \(6,\). An agent of several days"):
        private.predict_proba(np.zeros((2, 6), dtype=int))
    assert privatize_policy(recorded_agent(name).policy, 1.0).predict_proba(codes[:1]).shape == (1, 3)


def test_only_probabilities_are_in_the_simplex():
    assert privatize_policy(recorded_agent("PPO"), 1.0, policy="exponential", bounds="simplex")
    with pytest.raises(ValueError, match=r"a Q-network needs lower=\.\.\. and upper=\.\.\.\."):
        privatize_policy(recorded_agent("DQN"), 1.0, policy="exponential", bounds="simplex")
    agent = recorded_agent("PPO")
    agent.policy.get_distribution = lambda _observations: SimpleNamespace(distribution=[])
    with pytest.raises(ValueError, match="must choose one of a list of actions"):
        privatize_policy(agent, 1.0).predict_proba(np.array(RECORDED["codes"]))
    with pytest.raises(ValueError, match="RecordedPolicy has neither get_distribution nor q_net"):
        privatize_policy(RecordedPolicy("PPO"), 1.0)


def test_an_agent_that_is_not_fitted_to_a_problem_acts_in_environments():
    private = privatize_policy(recorded_agent("PPO"), 2.0)
    study = "examples/ward/study.toml"
    fitted = private.fit(ps.build_problem(ps.load_study(study)))
    name = "policysim:policysim/Treatment-v1"
    for env, episodes in (
        (gymnasium.make(name, study=study), 500),
        (gymnasium.make_vec(name, num_envs=500, study=study, autoreset_mode="SameStep"), 5_000),
    ):
        earned = ps.evaluate(env, private, episodes=episodes, seed=1).set_index("quantity")["mean"]
        exactly = ps.evaluate(env, fitted, episodes=episodes, seed=1).set_index("quantity")["mean"]
        # The same patients, and the same draws.
        assert earned.tolist() == exactly.tolist()
