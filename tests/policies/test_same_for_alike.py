"""One action for all who are alike in what is public: the best of all such policies, which reveals nothing."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import bank, neighbour_pairs, with_mask

from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive
from policies.adjacency import Listed
from policies.privacy_loss import privacy_loss
from policies.reference import SAME, BestFixed, SameForAlike
from policysim.study.sweep import evaluated_on, rows_on

LISTED = [[0, 0], [0, 1], [1, 0], [1, 2], [2, 1], [0, 1]]


@st.composite
def small_problems(draw):
    """At most three classes, ties in both tables, records and whole classes that never come, masks by class."""
    adjacency, n_records = draw(
        st.sampled_from(
            [
                (AnyRecord(), 6),
                (OneFeature((2, 3)), 6),
                (Sensitive((3, 2), (1,)), 6),
                (Sensitive((2, 3, 2), (0, 2)), 12),
                (Listed.sensitive(LISTED, [1]), 6),
                (Listed.one_feature(LISTED), 6),
            ]
        )
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_actions = int(rng.integers(2, 4))
    utilities, deaths = rng.integers(-3, 4, (n_records, n_actions)), rng.integers(0, 3, (n_records, n_actions)) / 8
    classes = classes_of(adjacency, n_records)
    prior = rng.integers(0, 3, n_records) * (rng.random(classes.max() + 1) < 0.8)[classes] + 0.0
    prior[0] += 1
    problem = DecisionProblem(
        utilities,
        prior / prior.sum(),
        adjacency,
        outcomes={"death": deaths},
        lead=draw(st.sampled_from(["death", None])),
    )
    if draw(st.booleans()):
        allowed = rng.random((classes.max() + 1, n_actions)) < 0.6
        allowed[:, 0] |= ~allowed.any(axis=1)
        problem = with_mask(problem, allowed[classes])
    return problem


def classes_of(adjacency, n_records):
    """Who is joined by a chain of neighbours, from the pairs alone."""
    classes = np.arange(n_records)
    if isinstance(adjacency, Listed):
        (hidden, *_), codes = adjacency.hidden, np.array(LISTED)
        kept = [axis for axis in range(2) if axis not in hidden] if adjacency.name == "sensitive" else []
        pairs = [
            (x, y)
            for x, y in itertools.product(range(n_records), repeat=2)
            if (codes[x][kept] == codes[y][kept]).all()
            and (adjacency.name == "sensitive" or (codes[x] != codes[y]).sum() <= 1)
        ]
    else:
        pairs = neighbour_pairs(adjacency, n_records)
    for _ in range(n_records):
        for x, y in pairs:
            classes[classes == classes[y]] = classes[x]
    return np.unique(classes, return_inverse=True)[1]


@settings(max_examples=150, deadline=None)
@given(problem=small_problems(), by_lead=st.booleans())
def test_no_other_policy_that_gives_each_class_one_action_is_better(problem, by_lead):
    classes = classes_of(problem.adjacency, problem.n_records)
    table = SameForAlike(by_lead=by_lead).probabilities(problem)
    assert set(np.unique(table)) <= {0.0, 1.0}
    assert all(len(np.unique(table[classes == each], axis=0)) == 1 for each in range(classes.max() + 1))
    assert privacy_loss(table, problem.adjacency).epsilon == 0
    allowed = [
        [action for action in range(problem.n_actions) if problem.admissible is None or problem.admissible[row, action]]
        for row in (int(np.argmax(classes == each)) for each in range(classes.max() + 1))
    ]
    others = [np.eye(problem.n_actions)[np.array(choice)[classes]] for choice in itertools.product(*allowed)]
    value = problem.value(table)
    if by_lead and problem.lead is not None:
        deaths = problem.expectation("death", table)
        least = min(problem.expectation("death", other) for other in others)
        assert deaths <= least + 1e-12
        others = [other for other in others if problem.expectation("death", other) <= least + 1e-12]
    assert value >= max(problem.value(other) for other in others) - 1e-12


@pytest.mark.parametrize("by_lead", [True, False])
def test_on_distinct_rows_everyone_gets_what_all_records_say(by_lead):
    policy = SameForAlike(by_lead=by_lead)
    for case in bank():
        table = case.problem.utilities[np.arange(case.problem.n_records) // 2]
        deaths = case.problem.outcomes["death"][np.arange(case.problem.n_records) // 2]
        mask = case.problem.admissible
        if mask is not None:
            continue
        problem = DecisionProblem(
            table, case.problem.prior, case.problem.adjacency, outcomes={"death": deaths}, lead="death"
        )
        on = evaluated_on(policy, problem)
        assert np.array_equal(policy.probabilities(on)[rows_on(on, problem)], policy.probabilities(problem))


def test_where_nothing_is_public_it_is_the_best_action_for_all():
    for case in bank():
        if isinstance(case.problem.adjacency, AnyRecord):
            best = BestFixed().probabilities(case.problem)
            assert case.problem.value(SameForAlike(by_lead=False).probabilities(case.problem)) == pytest.approx(
                case.problem.value(best)
            )


def test_leads_that_differ_by_less_than_one_in_a_million_are_the_same():
    for more, wanted in ((SAME / 2, [0.0, 1.0]), (2 * SAME, [1.0, 0.0])):
        problem = DecisionProblem(
            [[0.0, 1.0]], [1.0], AnyRecord(), outcomes={"death": [[0.1, 0.1 + more]]}, lead="death"
        )
        assert SameForAlike().probabilities(problem).tolist() == [wanted]
