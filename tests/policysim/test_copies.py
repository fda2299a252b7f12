"""Copies of problems, policies and private models: read-only, and all that is computed of them is computed anew."""

import copy
import math
import pickle
from dataclasses import is_dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import bank
from small_processes import random_arrays
from small_studies import SCENARIO

import policysim as ps
from envs.records import Lookup
from policies import DecisionProblem, make_policy
from policies.adjacency import Listed
from policies.selection import Selection
from policysim.decision.demands import Curve
from policysim.release.privatize_note import Randomization
from policysim.report.contents import Drawing

Q = np.random.default_rng(0).normal(size=(6, 3)).cumsum(axis=0)
WAYS = {
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "the first pickle": lambda value: pickle.loads(pickle.dumps(value, protocol=0)),
}


def doubled(batch):
    """A Q-network that can be pickled."""
    return 2 * np.asarray(batch)


def process():
    """Four states, three decisions."""
    moves, rewards, initial, _ = random_arrays(np.random.default_rng(3))
    return ps.TabularMDP(moves, rewards, initial, horizon=3)


@pytest.fixture(scope="module")
def modelled(tmp_path_factory):
    """The problem of a scenario: its other priors are made when they are asked for."""
    folder = tmp_path_factory.mktemp("modelled")
    (folder / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    (folder / "study.toml").write_text('scenario = "scenario.toml"\n', encoding="utf-8")
    return ps.build_problem(ps.load_study(str(folder / "study.toml")))


def all_of_problem(problem):
    """Everything that a problem computes."""
    classes = [(part.rows, part.columns) for part in problem.classes]
    return [
        problem.digest,
        problem.sensitivity,
        problem.best_actions,
        problem.fixed_values,
        problem.best_fixed_actions,
        *[array for pair in classes for array in pair],
        *problem.priors.values(),
        *[make_policy(name, epsilon=1.0).probabilities(problem) for name in ("exponential", "randomized-response")],
    ]


def of_policy(policy):
    """A policy's table on a problem of the bank, and what it says of itself."""
    problem = bank()[1].problem
    return [policy.probabilities(problem), policy.guarantee, policy.row_wise, policy.across_masks, policy.uses_prior]


N, K = bank()[1].problem.utilities.shape
# What is copied, and what it computes.
VALUES = {
    "problem": (lambda: replace(bank()[0].problem), all_of_problem),
    "problem with public features": (lambda: replace(bank()[1].problem), all_of_problem),
    "problem of single features": (lambda: replace(bank()[2].problem), all_of_problem),
    "problem with a mask": (lambda: replace(bank()[3].problem), all_of_problem),
    "problem of a class": (lambda: replace(bank()[3].problem).classes[0].problem, all_of_problem),
    "exponential-fitted": (lambda: make_policy("exponential-fitted", epsilon=1.0, floors=[1 / K] * K), of_policy),
    "optimal within bounds": (lambda: make_policy("optimal-safe", epsilon=1.0, capacity={"a0": 0.5}), of_policy),
    "optimal over priors": (lambda: make_policy("optimal-robust", epsilon=1.0, priors=[np.full(N, 1 / N)]), of_policy),
    "adjacency of a list": (
        lambda: Listed.one_feature([[0, 1], [0, 0], [1, 1]]),
        lambda listed: [listed.has_neighbour, *[part.order for part in listed.partitions(3)]],
    ),
    "private network": (
        lambda: ps.privatize_policy(doubled, 1.0, sample=Q),
        lambda private: [private.predict_proba(Q), private.box(np.arange(3), 3).log_floors, private.guarantee],
    ),
    "private table": (
        lambda: ps.privatize_policy(Q, 1.0),
        lambda private: [private.predict_proba(range(6)), private.act([0, 5], np.random.default_rng(0))],
    ),
    "fitted policy": (
        lambda: make_policy("exponential", epsilon=1.0).fit(bank()[3].problem),
        lambda fitted: [
            fitted.probabilities,
            fitted.epsilon_spent,
            fitted.value,
            list(fitted.expected.values()),
            fitted.act([0, 5], np.random.default_rng(0)),
        ],
    ),
    "process": (process, lambda mdp: [mdp.rewards, mdp.ends, mdp.initial, ps.plan(mdp).q_values]),
    "plan": (lambda: ps.plan(process()), lambda plan: [plan.q_values, plan.values, plan.actions]),
    "problem of schedules": (lambda: ps.plan_once(process(), 1.0).problem, all_of_problem),
    "selection": (lambda: ps.select([3, 5, 4], epsilon=1.0), lambda chosen: [chosen.scores, chosen.probabilities]),
    "channel": (lambda: ps.local.KAry(3, 1.0), lambda channel: [channel.matrix, channel.lie]),
}


def assert_equal(found, wanted):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def arrays_of(value):
    """The arrays of an object of ours, and of what it holds."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict | list | tuple):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from arrays_of(entry)
    elif is_dataclass(value):
        for entry in vars(value).values():
            yield from arrays_of(entry)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(("make", "compute"), VALUES.values(), ids=VALUES)
def test_a_copy_is_read_only_and_computes_the_same_itself(make, compute, way):
    original = make()
    wanted = compute(original)
    other = way(original)
    assert type(other) is type(original)
    # What is computed is not there before it is asked for.
    assert vars(other).keys() == vars(way(make())).keys()
    assert_equal(compute(other), wanted)
    arrays = [*arrays_of(original), *arrays_of(other)]
    assert not any(array.flags.writeable for array in arrays)


def with_utilities(problem, utilities):
    """A new problem, with all else of this one."""
    return DecisionProblem(
        utilities,
        problem.prior,
        problem.adjacency,
        problem.actions,
        records=problem.records,
        outcomes=problem.outcomes,
        priors=problem.priors,
        admissible=problem.admissible,
    )


@settings(max_examples=40)
@given(st.sampled_from(bank()), st.sampled_from(["deep copy", "pickle"]), st.sampled_from([0.5, 20.0]))
def test_what_a_changed_copy_computes_is_that_of_a_new_problem(case, way, factor):
    problem = case.problem
    before = all_of_problem(problem)
    wanted = all_of_problem(with_utilities(problem, factor * problem.utilities))
    other = WAYS[way](problem)
    with pytest.raises(ValueError, match="read-only"):
        other.utilities[0, 0] = 1.0
    # Even if somebody insists.
    object.__setattr__(other, "utilities", factor * problem.utilities)
    assert_equal(all_of_problem(other), wanted)
    assert_equal(all_of_problem(replace(problem, utilities=factor * problem.utilities)), wanted)
    assert_equal(all_of_problem(problem), before)


def test_priors_that_are_made_when_asked_for_survive_and_are_checked_once(modelled):
    wanted = {name: prior.copy() for name, prior in modelled.priors.items()}
    assert len(wanted) == 5
    for way in WAYS.values():
        found = dict(way(modelled).priors)
        assert list(found) == list(wanted)
        assert_equal(list(found.values()), list(wanted.values()))
        assert way(modelled).digest == modelled.digest
    # Each of the problems that come one from another would check them again.
    other = modelled
    for _ in range(1200):
        other = replace(other, actions=other.actions[::-1])
    assert_equal(list(other.priors.values()), list(wanted.values()))
    with pytest.raises(ValueError, match=r"priors\['prevalence × 1'\] must have shape \(1,\), got"):
        replace(
            modelled, utilities=[[0.0] * 3], prior=[1.0], records=None, outcomes={}, lead=None, adjacency=ps.AnyRecord()
        ).priors["prevalence × 1"]


def test_a_private_model_with_another_epsilon_or_sample_has_floors_of_its_own():
    private = ps.privatize_policy(doubled, 1.0, sample=Q)
    before = private.predict_proba(Q)
    for other, epsilon, sample in (
        (replace(private, epsilon=3.0), 3.0, Q),
        (replace(private, public_scores=Q[:, ::-1]), 1.0, Q[:, ::-1]),
    ):
        wanted = ps.privatize_policy(doubled, epsilon, sample=sample)
        np.testing.assert_array_equal(other.predict_proba(Q), wanted.predict_proba(Q))
        assert other.guarantee == epsilon
        assert np.abs(other.predict_proba(Q) - before).max() > 0.01


def private(values):
    """A randomisation of one column, and what it says and does: the epsilon of a row and of its channel."""
    return [values.epsilon, values.parts[0].channel.epsilon, values.parts[0].channel.n_values]


PLANNED = Randomization({"ill": ("no", "yes")}, 1.0)
# What has been asked already, what is replaced in it, what it is then, and what it is asked.
REPLACED = {
    "selection": (ps.select([3, 5, 4], epsilon=1.0), {"epsilon": 0.1}, ps.select([3, 5, 4], epsilon=0.1)),
    "scores": (ps.select([3, 5, 4], epsilon=1.0), {"given": [9, 5, 4]}, ps.select([9, 5, 4], epsilon=1.0)),
    "mechanism": (
        ps.select([3, 5, 4], epsilon=1.0),
        {"mechanism": "exponential-monotone"},
        ps.select([3, 5, 4], epsilon=1.0, mechanism="exponential-monotone"),
    ),
    "randomisation": (PLANNED, {"epsilon_of_person": 0.1}, Randomization(PLANNED.levels, 0.1)),
    "its levels": (PLANNED, {"levels": {"ill": ("a", "b", "c")}}, Randomization({"ill": ("a", "b", "c")}, 1.0)),
    "curve": (Curve("tanh", math.tanh), {"measure": math.sin}, Curve("sin", math.sin)),
    "drawing": (Drawing("a", str.upper), {"draw": str.title}, Drawing("a", str.title)),
    "lookup": (Lookup(np.array([[0, 1], [1, 1]])), {"codes": np.array([[1, 0]])}, Lookup(np.array([[1, 0]]))),
}
ASKED = {
    Selection: lambda chosen: [chosen.scores, chosen.probabilities, chosen.scale],
    Randomization: private,
    Curve: lambda curve: [curve(0.5), curve.first_reaching(0.3)],
    Drawing: lambda drawing: [drawing.at("page")],
    Lookup: lambda at: [at.of(np.arange(4).reshape(2, 2))],
}


@pytest.mark.parametrize(("original", "changes", "wanted"), REPLACED.values(), ids=REPLACED)
def test_what_was_computed_before_is_computed_anew_of_what_is_replaced(original, changes, wanted):
    ask = ASKED[type(original)]
    before = ask(original)
    assert_equal(ask(replace(original, **changes)), ask(wanted))
    assert_equal(ask(original), before)


def test_what_cannot_be_replaced_is_refused_in_a_line():
    network = ps.privatize_policy(doubled, 1.0, policy="exponential", lower=0.0, upper=1.0)
    refused = [
        (network, {"bounds": (2.0, 1.0)}, "finite bounds of the scores, lower < upper, .*, got lower=2.0, upper=1.0"),
        (network, {"mechanism": make_policy("optimal", epsilon=1.0)}, "policy must be one of .*, got policy='optimal'"),
        (ps.privatize_policy(doubled, 1.0), {"public_scores": [[0.0, np.nan]]}, r"got sample\[0, 1\]=nan"),
        (process(), {"horizon": 5}, "horizon is declared with init=False"),
        (ps.select([1, 2], epsilon=1.0), {"epsilon": -1.0}, "epsilon must be"),
        (ps.select([1, 2], epsilon=1.0), {"given": [1, 2, 3]}, "candidates must be 3 distinct names"),
        (PLANNED, {"epsilon_of_person": 0.0}, "epsilon must be > 0 and finite"),
        (bank()[2].problem, {"prior": [0.5, 0.5]}, "prior must have shape"),
        (bank()[0].problem, {"adjacency": ps.OneFeature((7, 11))}, "the adjacency is over 77 records"),
    ]
    for value, changes, message in refused:
        with pytest.raises(ValueError, match=message) as error:
            replace(value, **changes)
        assert "\n" not in str(error.value)


def test_a_selection_of_other_scores_releases_by_these():
    chosen = ps.select([9, 1, 1], epsilon=np.inf)
    assert chosen.probabilities.tolist() == [1, 0, 0]
    other = replace(chosen, given=(1, 1, 9))
    assert (other.scores.tolist(), other.probabilities.tolist(), other.release()) == ([1, 1, 9], [0, 0, 1], 2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'scores'"):
        replace(chosen, scores=np.zeros(3))
