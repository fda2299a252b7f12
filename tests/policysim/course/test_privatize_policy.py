"""Private policies of anybody's Q-values, against exact losses over all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_processes import loss_of, random_arrays

from policies import CATALOGUE, AnyRecord, DecisionProblem, make_policy
from policysim.course.planning import plan, policy_value
from policysim.course.privatize_policy import FOR_NETWORKS, PrivateNetwork, box_scale, privatize_policy
from policysim.course.process import InfiniteLossWarning
from policysim.course.tabular import TabularMDP

Q = np.random.default_rng(0).normal(size=(6, 3)).cumsum(axis=0)
NAMES = [name for name, kind in CATALOGUE.items() if not kind.uses_prior]


@pytest.mark.parametrize("name", NAMES)
def test_a_table_of_all_states_is_privatised_by_its_exact_sensitivity(name):
    private = privatize_policy(Q, 0.8, policy=name)
    problem = DecisionProblem(Q, np.full(6, 1 / 6), AnyRecord())
    policy = make_policy(name, epsilon=0.8)
    assert private.probabilities == pytest.approx(policy.probabilities(problem), abs=1e-15)
    assert private.epsilon_spent == pytest.approx(loss_of(private.probabilities))
    assert private.epsilon_spent <= private.guarantee + 1e-12
    assert private.guarantee == policy.guarantee


def test_a_plan_goes_straight_in_and_its_probabilities_straight_back():
    moves, rewards, initial, last = random_arrays(np.random.default_rng(1), 4, 3, ends=0.2)
    mask = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1]], dtype=bool)
    for horizon in (None, 5):
        mdp = TabularMDP(moves, rewards, initial, horizon=horizon, ends=last, admissible=mask, mask_public=True)
        found = plan(mdp)
        private = privatize_policy(found.q_values, 1.0, mask_public=True)
        assert private.probabilities.shape == found.q_values.shape
        assert (private.probabilities[..., 0, 2] == 0).all()
        assert policy_value(mdp, private.probabilities) < found.value
        # tight attains its epsilon up to 1e-6 in each class
        assert private.epsilon_spent == pytest.approx(1.0, abs=1e-5)
        with pytest.warns(InfiniteLossWarning, match="infinite at every epsilon"):
            hidden = privatize_policy(found.q_values, 1.0)
        assert hidden.epsilon_spent == hidden.guarantee == np.inf
        exactly = privatize_policy(np.where(mask, found.q_values, np.nan), 1.0, admissible=mask, mask_public=True)
        assert (exactly.probabilities == private.probabilities).all()


def exact_box_loss(t, n_actions):
    """max over the box of log p(a|q) - log p(a|q') at t = width / s, from the extremes of a softmax."""
    high = 1 / (1 + (n_actions - 1) * np.exp(-t))
    low = np.exp(-t) / (np.exp(-t) + n_actions - 1)
    return np.log(high / low)


@pytest.mark.parametrize("n_actions", [2, 3, 7])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_scale_over_a_box_spends_epsilon_and_no_more(n_actions, epsilon):
    width = 3.7
    for name in ("exponential", "exponential-bounded-range"):
        scale = box_scale(make_policy(name, epsilon=epsilon), n_actions, width)
        assert scale == pytest.approx(2 * width / epsilon)
        assert exact_box_loss(width / scale, n_actions) <= epsilon + 1e-12
    tight = box_scale(make_policy("exponential-tight", epsilon=epsilon), n_actions, width)
    # found on a grid, to 1e-6 of epsilon
    assert epsilon * (1 - 1e-5) <= exact_box_loss(width / tight, n_actions) <= epsilon + 1e-12
    if n_actions == 2:
        assert tight == pytest.approx(width / epsilon, rel=1e-5)


def worst_pair(network, low, high, n_actions, seed):
    """The largest loss over the corners of the box, some points far outside it, and some within."""
    rng = np.random.default_rng(seed)
    corners = np.array(np.meshgrid(*[[low, high]] * n_actions)).reshape(n_actions, -1).T
    scores = np.concatenate(
        [corners, rng.normal(scale=100, size=(20, n_actions)), [[1e300, *[-1e300] * (n_actions - 1)]]]
    )
    return loss_of(network.probabilities(scores))


@pytest.mark.parametrize("name", FOR_NETWORKS)
@given(epsilon=st.floats(0, 20), n_actions=st.integers(2, 5), low=st.floats(-50, 50), width=st.floats(0.01, 100))
def test_no_two_observations_are_told_apart_by_more_than_epsilon(name, epsilon, n_actions, low, width):
    network = privatize_policy(np.asarray, epsilon, policy=name, lower=low, upper=low + width)
    if name == "randomized-response":
        network = privatize_policy(lambda batch: np.clip(batch, -1e9, 1e9), epsilon, policy=name)
    assert network.guarantee == epsilon
    assert worst_pair(network, low, low + width, n_actions, 0) <= epsilon * (1 + 1e-9) + 1e-9


def test_a_scale_from_the_seen_states_would_break_the_promise():
    # The planted bug: two states were seen whose scores hardly differ, a third one comes later.
    seen = np.array([[0.0, 0.1], [0.1, 0.0]])
    wrong = PrivateNetwork(np.asarray, make_policy("exponential-tight", epsilon=1.0), 0.0, 0.1, False)
    object.__setattr__(wrong, "lower", -10.0)
    object.__setattr__(wrong, "upper", 10.0)
    wrong._scales[2] = box_scale(wrong.policy, 2, 0.1)
    assert loss_of(wrong.probabilities(seen)) <= 1 + 1e-9
    assert worst_pair(wrong, -10.0, 10.0, 2, 0) > 100
    assert worst_pair(privatize_policy(np.asarray, 1.0, lower=-10, upper=10), -10.0, 10.0, 2, 0) <= 1 + 1e-9


def test_a_row_does_not_depend_on_what_stands_beside_it():
    for name in FOR_NETWORKS:
        network = privatize_policy(np.asarray, 1.0, policy=name, lower=-1, upper=1)
        together = network.probabilities(Q)
        assert all((network.probabilities(Q[i : i + 1])[0] == together[i]).all() for i in range(len(Q)))


@pytest.mark.parametrize("name", FOR_NETWORKS)
def test_a_mask_with_each_batch_is_respected_if_it_is_public(name):
    mask = np.array([[True, True, False], [False, True, True], [False, True, False]] * 2)
    network = privatize_policy(np.asarray, 1.0, policy=name, lower=-2, upper=2, mask_public=True)
    table = network.probabilities(Q, admissible=mask)
    assert (table[~mask] == 0).all()
    assert table.sum(axis=1) == pytest.approx(np.ones(6))
    for rows in ([0, 3], [1, 4]):
        assert loss_of(table[rows][:, mask[rows[0]]]) <= 1 + 1e-9
    with pytest.raises(ValueError, match="declare mask_public=True"):
        privatize_policy(np.asarray, 1.0, policy=name, lower=-2, upper=2).probabilities(Q, admissible=mask)


def test_no_privacy_is_greedy_and_no_epsilon_is_uniform():
    for name in FOR_NETWORKS:
        free = privatize_policy(np.asarray, np.inf, policy=name, lower=-9, upper=9).probabilities(Q)
        assert (free == np.eye(3)[Q.argmax(axis=1)]).all()
        none = privatize_policy(np.asarray, 0.0, policy=name, lower=-9, upper=9).probabilities(Q)
        assert none == pytest.approx(np.full((6, 3), 1 / 3))


def test_actions_are_drawn_with_their_probabilities():
    rng = np.random.default_rng(0)
    private = privatize_policy(Q, 2.0)
    network = privatize_policy(lambda states: Q[states], 2.0, lower=-3, upper=3)
    states = np.full(40_000, 2)
    for actions, p in (
        (private.act(states, rng), private.probabilities[2]),
        (network.act(states, rng), network.probabilities([2])[0]),
    ):
        frequencies = np.bincount(actions, minlength=3) / len(states)
        # five standard errors
        assert (np.abs(frequencies - p) < 5 * np.sqrt(p * (1 - p) / len(states))).all()
    assert private.act(2, rng).shape == (1,)
    daily = privatize_policy(np.stack([Q, -Q]), np.inf)
    assert daily.act([0, 1], rng, day=1).tolist() == (-Q).argmax(axis=1)[:2].tolist()
    with pytest.raises(ValueError, match="day must be given for a table of each day"):
        daily.act([0], rng)


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (Q, {"policy": "optimal"}, "optimal needs a prior"),
        (Q, {"lower": 0, "upper": 1}, "pass lambda states: q_values"),
        (Q[0], {}, r"must be \(S, A\) or \(H, S, A\), got shape \(3,\)"),
        (np.where(Q > 1, np.nan, Q), {}, "utilities must be finite"),
        (np.asarray, {}, "lower < upper .* got lower=None, upper=None"),
        (np.asarray, {"lower": 1, "upper": 0}, "got lower=1, upper=0"),
        (np.asarray, {"lower": 0, "upper": np.inf}, "must be finite bounds"),
        (np.asarray, {"lower": 0, "upper": 1, "policy": "permute-and-flip"}, "for a function, got policy='permute"),
        (np.asarray, {"lower": 0, "upper": 1, "admissible": Q > 0}, "give a network's mask with each batch"),
    ],
)
def test_bad_input_is_refused(given, options, message):
    with pytest.raises(ValueError, match=message):
        privatize_policy(given, 1.0, **options)


@pytest.mark.parametrize("policy", ["exponential-tight", "randomized-response"])
@pytest.mark.parametrize(
    ("scores", "message"),
    [([1.0, 2.0], r"shape \(2,\)"), ([[np.nan, 1.0]], "got NaN"), ([[-np.inf, 0.0]], "got infinite ones")],
)
def test_bad_scores_are_refused(policy, scores, message):
    with pytest.raises(ValueError, match=message):
        privatize_policy(lambda _: scores, 1.0, policy=policy, lower=0, upper=1).probabilities(None)


# Modules.


class Tensor:
    """As much of a tensor of torch as is asked for; NumPy cannot read one that has a gradient."""

    def __init__(self, data, *, attached=True, wide=False):
        self.data, self.attached, self.wide = np.asarray(data), attached, wide

    def detach(self):
        return Tensor(self.data, attached=False)

    def cpu(self):
        return self

    def double(self):
        return Tensor(self.data.astype(np.float64), attached=self.attached, wide=True)

    def numpy(self):
        assert not self.attached and self.wide
        return self.data

    def new_tensor(self, data):
        return Tensor(np.asarray(data, dtype=self.data.dtype), attached=False)

    def __array__(self, *_args, **_options):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")


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


@pytest.mark.parametrize("name", FOR_NETWORKS)
def test_a_module_is_given_tensors_and_scores_as_its_arrays_would(name):
    module = Linear(WEIGHTS).eval()
    private = privatize_policy(module, 1.0, policy=name, lower=-3, upper=3)
    arrays = privatize_policy(
        lambda batch: np.asarray(batch) @ np.asarray(WEIGHTS), 1.0, policy=name, lower=-3, upper=3
    )
    expected = arrays.probabilities(BATCH)
    assert private.probabilities(BATCH) == pytest.approx(expected, rel=1e-6)
    assert private.probabilities(Tensor(np.asarray(BATCH, dtype=np.float32))) == pytest.approx(expected, rel=1e-6)


def test_modules_in_training_or_that_are_not_finite_are_refused_in_one_line():
    module = Linear(WEIGHTS)
    with pytest.raises(ValueError, match=r"^q_values is in training mode, .*: call q_values.eval\(\) first.$"):
        privatize_policy(module, 1.0, lower=-3, upper=3)
    private = privatize_policy(module.eval(), 1.0, lower=-3, upper=3)
    module.training = True
    with pytest.raises(ValueError, match="is in training mode"):
        private.probabilities(BATCH)
    with pytest.raises(
        ValueError, match=r"^q_values must be finite, got a module with parameters that are infinite or NaN.$"
    ):
        privatize_policy(Linear([[np.nan, 1.0]]).eval(), 1.0, lower=-3, upper=3)
    with pytest.raises(ValueError, match="lower and upper must be finite bounds of the scores"):
        privatize_policy(Linear(WEIGHTS).eval(), 1.0)


def test_true_allows_every_action_of_a_table():
    allowed = privatize_policy(Q, 1.0, admissible=True)
    assert np.array_equal(allowed.probabilities, privatize_policy(Q, 1.0).probabilities)
