"""The comparison over a whole course, against definitions and enumeration of paths."""

from contextlib import nullcontext

import gymnasium
import numpy as np
import pytest
from small_processes import WithOutcomes, expected_by_paths, loss_of, random_arrays

import policysim as ps
from policies import AnyRecord, DecisionProblem, make_policy
from policies.masked import masked_problem
from policies.optimal.optimum import catalogue_name
from policysim.course.planning import plan, policy_value, policy_values
from policysim.course.step_problems import optimal_course, reference_priors
from policysim.course.tabular import TabularMDP

HORIZON = 3
POLICIES = ["greedy", "uniform", "best-fixed", "exponential", "randomized-response", "optimal-daily"]


def arrays(seed=0):
    return random_arrays(np.random.default_rng(seed), 4, 3, ends=0.2, sparse=True)


def process(seed=0, *, discount=0.9, horizon=HORIZON, **options):
    moves, rewards, initial, last = arrays(seed)
    return TabularMDP(moves, rewards, initial, discount, horizon, ends=last, **options)


def daily_tables(mdp, policy):
    """What a policy does on each day, from the definition: decisions between Q-values, priors under the optimum."""
    found, priors = plan(mdp), reference_priors(mdp)
    return [
        policy.probabilities(DecisionProblem(found.q_values[day], priors[day], AnyRecord())) for day in range(HORIZON)
    ]


def best_constant(value):
    return max(value(np.eye(3)[np.full(4, action)]) for action in range(3))


@pytest.fixture(scope="module")
def mdp():
    return process()


@pytest.fixture(scope="module")
def table(mdp):
    return ps.compare(mdp, policies=POLICIES, epsilons=[0.5, 2])


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_every_number_equals_its_definition(mdp, table, name, epsilon):
    row = table[(table["policy"] == name) & (table["epsilon"] == epsilon)].iloc[0]
    tables = daily_tables(mdp, make_policy(catalogue_name(name), epsilon=epsilon))
    best, uniform = plan(mdp).value, policy_value(mdp, np.full((4, 3), 1 / 3))
    fixed = best_constant(lambda p: policy_value(mdp, p))
    value = fixed if name == "best-fixed" else policy_value(mdp, np.stack(tables))
    losses = [0.0] if name == "best-fixed" else [loss_of(day) for day in tables]
    expected = {
        "share": 1.0,
        "horizon": HORIZON,
        "value": value,
        "loss": best - value,
        "normalized_loss": (best - value) / (best - uniform),
        "benefit_kept": (value - fixed) / (best - fixed),
        "epsilon_spent": max(losses),
        "total_epsilon": sum(losses),
    }
    for column, number in expected.items():
        assert row[column] == pytest.approx(number, rel=1e-10, abs=1e-12), column
    assert (row["group"], row["level"]) == ("all", "all")


def test_the_total_of_the_daily_losses_bounds_what_the_whole_course_reveals(mdp):
    # The observer sees the actions of all days. p(a1, a2, a3 | first state), by following every path.
    moves, *_ = arrays()
    tables = daily_tables(mdp, make_policy("exponential-tight", epsilon=1.0))
    seen = np.zeros((4, 3, 3, 3))
    for first in range(4):
        mass = np.eye(4)[first]
        for a in range(3):
            one = (mass * tables[0][:, a]) @ moves[:, a]
            for b in range(3):
                two = (one * tables[1][:, b]) @ moves[:, b]
                for c in range(3):
                    seen[first, a, b, c] = two @ tables[2][:, c]
    # A day ends the process with the same probability in all states, which reveals nothing.
    flat = seen.reshape(4, -1)
    exact = max(np.log(x / y).max() for x in flat for y in flat)
    row = ps.compare(mdp, policies=["exponential-tight"], epsilons=[1]).iloc[0]
    assert 0 < exact <= row["total_epsilon"] <= 3


def test_groups_of_the_first_state_and_outcomes_are_counted_along_the_course():
    moves, rewards, initial, last = arrays(3)
    rng = np.random.default_rng(8)
    outcome = np.asfortranarray(rng.random((4, 3)))
    groups = {"ward": (np.array([0, 1, 1, 0]), ("east", "west", "empty"))}
    mdp = TabularMDP(moves, rewards, initial, 0.8, HORIZON, ends=last)
    course = WithOutcomes(mdp, {"deaths": outcome}, groups)
    table = ps.compare(course, policies=["exponential", "greedy"], epsilons=[1], by=["ward"])
    alone = ps.compare(course, policies=["exponential", "greedy"], epsilons=[1])
    whole = table[table["group"] == "all"].reset_index(drop=True)
    assert list(whole.columns) == list(alone.columns)
    numbers = [column for column in whole.columns if column not in ("policy", "group", "level")]
    assert whole[numbers].to_numpy(float) == pytest.approx(alone[numbers].to_numpy(float), nan_ok=True)
    tables = daily_tables(mdp, make_policy("exponential", epsilon=1.0))
    values = np.array([expected_by_paths(moves, rewards, tables, state, discount=0.8) for state in range(4)])
    deaths = np.array([expected_by_paths(moves, outcome, tables, state) for state in range(4)])
    best = np.array([expected_by_paths(moves, outcome, np.eye(3)[plan(mdp).actions], state) for state in range(4)])
    for level, code in (("east", 0), ("west", 1)):
        row = table[(table["policy"] == "exponential") & (table["level"] == level)].iloc[0]
        weight = initial * (groups["ward"][0] == code)
        assert row["share"] == pytest.approx(weight.sum())
        assert row["value"] == pytest.approx(weight @ values / weight.sum())
        assert row["expected_deaths"] == pytest.approx(weight @ deaths / weight.sum())
        assert row["extra_deaths"] == pytest.approx(weight @ (deaths - best) / weight.sum())
    empty = table[table["level"] == "empty"]
    assert (empty["share"] == 0).all()
    assert empty["value"].isna().all()


def test_without_a_horizon_one_table_is_used_for_ever_and_any_loss_adds_up_to_infinity():
    mdp = process(5, discount=1.0, horizon=None)
    found = plan(mdp)
    table = ps.compare(mdp, policies=["exponential", "uniform"], epsilons=[1]).set_index("policy")
    course = optimal_course(mdp)
    p = make_policy("exponential", epsilon=1.0).probabilities(
        DecisionProblem(found.q_values, np.full(4, 0.25), AnyRecord())
    )
    assert table.loc["exponential", "value"] == pytest.approx(policy_value(mdp, p))
    assert table.loc["exponential", "epsilon_spent"] == pytest.approx(loss_of(p))
    assert table.loc["exponential", "total_epsilon"] == np.inf
    assert table.loc["uniform", "total_epsilon"] == 0
    assert table["horizon"].tolist() == [np.inf, np.inf]
    assert course.days[0].whole.prior.sum() == pytest.approx(1)


MASK = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=bool)


@pytest.mark.parametrize("public", [False, True])
def test_masks_are_told_apart_unless_they_are_public(public):
    mdp = process(admissible=MASK, mask_public=public)
    told = nullcontext() if public else pytest.warns(ps.InfiniteLossWarning, match="infinite at every epsilon")
    with told:
        table = ps.compare(mdp, policies=["exponential", "uniform", "best-fixed"], epsilons=[1]).set_index("policy")
    found, priors = plan(mdp), reference_priors(mdp)
    policy = make_policy("exponential", epsilon=1.0)
    days = [masked_problem(found.q_values[day], priors[day], MASK).tables(policy)[1] for day in range(HORIZON)]
    assert table.loc["exponential", "value"] == pytest.approx(policy_value(mdp, np.stack(days)))
    assert table.loc["uniform", "value"] == pytest.approx(policy_value(mdp, MASK / MASK.sum(axis=1, keepdims=True)))
    # only a1 is admissible everywhere
    fixed = policy_value(mdp, np.eye(3)[[1, 1, 1, 1]])
    assert table.loc["best-fixed", "value"] == pytest.approx(fixed)
    assert table.loc["exponential", "benefit_kept"] == pytest.approx(
        (policy_value(mdp, np.stack(days)) - fixed) / (found.value - fixed)
    )
    if public:
        assert 0 < table.loc["exponential", "epsilon_spent"] <= 1
        assert table.loc["uniform", "epsilon_spent"] == 0
    else:
        assert table.loc["exponential", "epsilon_spent"] == np.inf
        assert table.loc["uniform", "total_epsilon"] == np.inf
    assert table.loc["best-fixed", "epsilon_spent"] == 0


def test_an_infinite_loss_is_a_warning_only_where_no_policy_keeps_its_epsilon():
    hidden = process(admissible=MASK)
    with pytest.warns(ps.InfiniteLossWarning, match="mask_public=True if it is public") as told:
        ps.compare(hidden, policies=["randomized-response", "optimal-daily"], epsilons=[0.5, 20])
    assert told[0].filename == __file__
    # Nobody promised a finite one here: warnings are errors in these tests.
    ps.compare(hidden, policies=["greedy", "best-fixed", "uniform"], epsilons=[1])
    ps.compare(hidden, policies=["exponential"], epsilons=[np.inf])
    ps.compare(process(admissible=True), policies=["exponential"], epsilons=[1])
    with pytest.warns(ps.InfiniteLossWarning):
        ps.privatize_policy(plan(hidden).q_values, epsilon=1.0)
    ps.privatize_policy(plan(hidden).q_values, epsilon=1.0, mask_public=True)


def test_the_former_name_of_the_optimum_of_each_decision_is_an_alias_with_a_warning(mdp, table):
    with pytest.warns(FutureWarning, match="is called 'optimal-daily'") as told:
        old = ps.compare(mdp, policies=["optimal", "optimal-daily"], epsilons=[0.5, 2])
    assert told[0].filename == __file__
    new = table[table["policy"] == "optimal-daily"].reset_index(drop=True)
    assert old.equals(new)
    # A policy that was made has no other name, and is told nothing.
    made = ps.compare(mdp, policies=[make_policy("optimal")], epsilons=[0.5, 2])
    assert made.equals(new)
    assert "optimal-daily" in set(ps.compare(mdp, epsilons=[1])["policy"])


def test_the_optimum_of_each_decision_is_no_limit_for_the_course():
    """Why it is called so: on this chain, one that is compared with it is worth more over the course."""
    worth = []
    for seed in range(40):
        found = ps.compare(process(seed), policies=["optimal-daily", "randomized-response", "best-fixed"], epsilons=[1])
        values = found.set_index("policy")["value"]
        worth.append(values.drop("optimal-daily").max() - values["optimal-daily"])
    assert max(worth) > 1e-6


def test_without_an_action_for_all_there_is_no_benefit_to_keep():
    mask = MASK.copy()
    mask[3] = [False, False, True]
    table = ps.compare(process(admissible=mask), policies=["best-fixed", "greedy"], epsilons=[1])
    assert table["benefit_kept"].isna().all()
    assert np.isfinite(table["value"]).all()


def test_a_policy_that_never_ends_says_so_by_its_value():
    # Stay in state 0 at a cost, or leave; state 1 ends. One action for all that stays is no reference.
    moves = np.zeros((2, 2, 2))
    moves[0, 0, 0] = moves[0, 1, 1] = 1
    mdp = TabularMDP(moves, [[-1, -1], [0, -5]], [1, 0], ends=[[0, 0], [1, 1]])
    table = ps.compare(mdp, policies=["best-fixed", "exponential", "uniform"], epsilons=[1]).set_index("policy")
    assert policy_values(mdp, [[1, 0], [1, 0]]).tolist() == [-np.inf, 0]
    assert table.loc["best-fixed", "value"] == -6
    assert table.loc["uniform", "value"] == pytest.approx(-2 - 2.5)
    always = TabularMDP(moves, [[-1, -1], [0, 0]], [1, 0], ends=[[0, 0], [1, 1]], admissible=[[1, 1], [1, 0]])
    only = ps.compare(always, policies=["best-fixed", "uniform"], epsilons=[1]).set_index("policy")
    # a0 is the only action that is admissible everywhere, and it never ends
    assert only["benefit_kept"].isna().all()
    assert only.loc["uniform", "value"] == pytest.approx(-2)


def test_a_sure_walk_over_the_lake_is_worth_its_whole_value_to_greedy():
    mdp = TabularMDP.from_env(gymnasium.make("FrozenLake-v1", is_slippery=False))
    row = ps.compare(mdp, policies=["greedy"], epsilons=[1]).iloc[0]
    assert row["value"] == 1
    assert row["epsilon_spent"] == np.inf


def test_advance_is_called_for_each_policy_and_epsilon(mdp):
    calls = []
    names = ["greedy", "best-fixed", "exponential"]
    ps.compare(mdp, policies=names, epsilons=[1, 2, 3], advance=lambda: calls.append(1))
    assert len(calls) == 5


def test_more_epsilon_is_never_worth_less_and_everything_tends_to_the_best(mdp):
    table = ps.compare(mdp, policies=["exponential", "randomized-response"], epsilons=[0, 200, 1e6])
    for _, rows in table.groupby("policy"):
        assert rows["value"].iloc[-1] == pytest.approx(plan(mdp).value)
        assert rows["epsilon_spent"].iloc[0] == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nothing", "compare takes a DecisionProblem or a process"),
        ({"policies": "greedy"}, "must be lists"),
        ({"policies": ["exponental"]}, "did you mean 'exponential'"),
        ({"by": ["ward"]}, "unknown group 'ward'"),
        ({"epsilons": [-1]}, "got -1"),
    ],
)
def test_bad_input_is_refused(mdp, given, message):
    with pytest.raises(ValueError, match=message):
        if given == "nothing":
            ps.compare(given)
        else:
            ps.compare(mdp, **given)
