"""The comparison over a whole course, against definitions and enumeration of paths."""

import math
from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest
from small_processes import (
    WithOutcomes,
    expected_by_paths,
    loss_of,
    moves_of,
    published,
    random_arrays,
    replayed,
    worst_divergence,
)

import policysim as ps
from policies import AnyRecord, DecisionProblem, make_policy
from policies.masked import MaskedProblem, masked_problem
from policies.optimal.optimum import catalogue_name
from policysim.course.affordable import buy_most
from policysim.course.composition import composed_in_classes
from policysim.course.course_evaluation import ProcessEvaluator
from policysim.course.planning import optimal_course, plan, policy_value, policy_values
from policysim.course.private_planner import PrivatePlanner
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
    found, priors = plan(mdp), optimal_course(mdp).priors()
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
    return ps.compare(mdp, policies=POLICIES, epsilons=[0.5, 2], continuation="optimal")


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


def test_groups_of_the_first_state_and_outcomes_are_counted_along_the_course():
    moves, rewards, initial, last = arrays(3)
    rng = np.random.default_rng(8)
    outcome = np.asfortranarray(rng.random((4, 3)))
    groups = {"ward": (np.array([0, 1, 1, 0]), ("east", "west", "empty"))}
    mdp = TabularMDP(moves, rewards, initial, 0.8, HORIZON, ends=last)
    course = WithOutcomes(mdp, {"death": outcome}, groups)
    optimal = {"continuation": "optimal"}
    table = ps.compare(course, policies=["exponential", "greedy"], epsilons=[1], by=["ward"], **optimal)
    alone = ps.compare(course, policies=["exponential", "greedy"], epsilons=[1], **optimal)
    whole = table[table["group"] == "all"].reset_index(drop=True)
    assert list(whole.columns) == list(alone.columns)
    words = ("policy", "group", "level", "continuation", "hides")
    numbers = [column for column in whole.columns if column not in words]
    assert whole[numbers].to_numpy(float) == pytest.approx(alone[numbers].to_numpy(float), nan_ok=True)
    tables = daily_tables(mdp, make_policy("exponential", epsilon=1.0))
    values = np.array([expected_by_paths(moves, rewards, tables, state, discount=0.8) for state in range(4)])
    deaths = np.array([expected_by_paths(moves, outcome, tables, state) for state in range(4)])
    for_all = [np.eye(3)[np.full((HORIZON, 4), action)] for action in range(3)]
    worth = [
        initial @ [expected_by_paths(moves, rewards, same, state, discount=0.8) for state in range(4)]
        for same in for_all
    ]
    same = for_all[int(np.argmax(worth))]
    fixed = np.array([expected_by_paths(moves, outcome, same, state) for state in range(4)])
    for level, code in (("east", 0), ("west", 1)):
        row = table[(table["policy"] == "exponential") & (table["level"] == level)].iloc[0]
        weight = initial * (groups["ward"][0] == code)
        assert row["share"] == pytest.approx(weight.sum())
        assert row["value"] == pytest.approx(weight @ values / weight.sum())
        assert row["expected_death"] == pytest.approx(weight @ deaths / weight.sum())
        assert row["extra_death"] == pytest.approx(weight @ (deaths - fixed) / weight.sum())
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
        table = ps.compare(
            mdp, policies=["exponential", "uniform", "best-fixed"], epsilons=[1], continuation="optimal"
        ).set_index("policy")
    found, priors = plan(mdp), optimal_course(mdp).priors()
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


def test_the_optimum_of_each_decision_has_two_names_and_one_row(mdp, table):
    found = ps.compare(mdp, policies=["optimal", "optimal-daily"], epsilons=[0.5, 2], continuation="optimal")
    new = table[table["policy"] == "optimal-daily"].reset_index(drop=True)
    assert found.equals(new)
    made = ps.compare(mdp, policies=[make_policy("optimal")], epsilons=[0.5, 2], continuation="optimal")
    assert made.equals(new)
    assert "optimal-daily" in set(ps.compare(mdp, epsilons=[1])["policy"])


def test_without_a_horizon_the_optimum_of_each_decision_is_refused_in_one_line():
    endless = process(horizon=None)
    for asked in ("optimal-daily", "optimal", make_policy("optimal")):
        with pytest.raises(ValueError, match=r"^optimal-daily needs a horizon: .*Give the process a horizon") as told:
            ps.compare(endless, policies=["exponential", asked], epsilons=[2, 3, 4])
        assert "\n" not in str(told.value)
    with pytest.raises(ValueError, match=r"^optimal-daily needs a horizon"):
        ps.smallest_epsilon(endless, "optimal-daily", keep=0.5)
    # By default it is not asked for, and no other number depends on which epsilons are.
    table = ps.compare(endless, epsilons=[2, 3, 4])
    assert "optimal-daily" not in set(table["policy"]) and len(table) == 3 * 4
    alone = ps.compare(endless, epsilons=[3])
    assert table[table["epsilon"] == 3].reset_index(drop=True).equals(alone)


def test_without_an_action_for_all_there_is_no_benefit_to_keep():
    mask = MASK.copy()
    mask[3] = [False, False, True]
    table = ps.compare(process(admissible=mask), policies=["best-fixed", "greedy"], epsilons=[1])
    assert table["benefit_kept"].isna().all()
    assert np.isfinite(table["value"]).all()


def test_a_group_whose_value_is_infinite_leaves_that_of_others():
    # State 0 ends with a reward of 1; state 1 stays for ever, at 0 or at -1.
    moves, ends = [[[0, 0], [0, 0]], [[0, 1], [0, 1]]], [[1, 1], [0, 0]]
    groups = WithOutcomes(None, {}, {"ward": (np.array([0, 1]), ("east", "west"))})
    mdp = TabularMDP(moves, [[1, 1], [0, -1]], [0.5, 0.5], ends=ends, records=groups, axes="SAS")
    table = ps.compare(mdp, policies=["uniform"], epsilons=[1.0], by=["ward"])
    assert table["value"].tolist() == [-math.inf, 1.0, -math.inf]


def test_a_policy_that_never_ends_says_so_by_its_value():
    # Stay in state 0 at a cost, or leave; state 1 ends. One action for all that stays is no reference.
    moves = np.zeros((2, 2, 2))
    moves[0, 0, 0] = moves[0, 1, 1] = 1
    mdp = TabularMDP(moves, [[-1, -1], [0, -5]], [1, 0], ends=[[0, 0], [1, 1]], axes="SAS")
    table = ps.compare(mdp, policies=["best-fixed", "exponential", "uniform"], epsilons=[1]).set_index("policy")
    assert policy_values(mdp, [[1, 0], [1, 0]]).tolist() == [-np.inf, 0]
    assert table.loc["best-fixed", "value"] == -6
    assert table.loc["uniform", "value"] == pytest.approx(-2 - 2.5)
    always = TabularMDP(
        moves, [[-1, -1], [0, 0]], [1, 0], ends=[[0, 0], [1, 1]], admissible=[[1, 1], [1, 0]], axes="SAS"
    )
    only = ps.compare(always, policies=["best-fixed", "uniform"], epsilons=[1]).set_index("policy")
    # a0 is the only action that is admissible everywhere, and it never ends
    assert only["benefit_kept"].isna().all()
    assert only.loc["uniform", "value"] == pytest.approx(-2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nothing", "compare takes a DecisionProblem or a process"),
        ({"policies": "greedy"}, "must be lists"),
        ({"policies": ["exponental"]}, "did you mean 'exponential'"),
        ({"by": ["ward"]}, "unknown group 'ward'"),
        ({"epsilons": [-1]}, "got -1"),
        ({"continuation": "best"}, 'continuation must be "private" or "optimal", got continuation=\'best\''),
        ({"delta": 1e-6}, "delta goes with total_epsilons"),
        ({"total_epsilons": [-1]}, "epsilon must be a number >= 0, got -1"),
        ({"total_epsilons": [1], "delta": 1}, "delta must be < 1"),
        ({"total_epsilons": [1], "epsilons": [1]}, r"give epsilons \(of one decision\) or total_epsilons"),
        ({"total_epsilons": [1], "continuation": "optimal"}, r"give epsilons \(of one decision\) or total_epsilons"),
    ],
)
def test_bad_input_is_refused(mdp, given, message):
    with pytest.raises(ValueError, match=message):
        if given == "nothing":
            ps.compare(given)
        else:
            ps.compare(mdp, **given)


# The policy's own continuation.


@pytest.mark.parametrize("name", ["exponential", "exponential-fitted", "randomized-response", "optimal-daily"])
def test_a_policy_counts_on_what_it_will_do_itself(mdp, name):
    row = ps.compare(mdp, policies=[name], epsilons=[0.7]).iloc[0]
    policy = make_policy(catalogue_name(name), epsilon=0.7)
    found = plan(mdp, policy=policy)
    assert row["continuation"] == "private"
    if not policy.uses_prior:
        tables = [policy.probabilities(DecisionProblem(q, np.full(4, 0.25), AnyRecord())) for q in found.q_values]
        assert row["value"] == pytest.approx(found.value, rel=1e-12)
        assert row["value"] == pytest.approx(policy_value(mdp, np.stack(tables)), rel=1e-12)
        assert row["epsilon_spent"] == pytest.approx(max(loss_of(table) for table in tables))
    else:
        # It may be told another prior, if that is worth more.
        assert row["value"] >= found.value - 1e-12


def test_the_optimum_of_each_day_is_worth_no_less_than_one_action_for_all_that_may_change_by_the_day():
    for seed in range(6):
        mdp = process(seed)
        of_days = [np.eye(3)[np.tile(days, (4, 1)).T] for days in product(range(3), repeat=HORIZON)]
        schedules = [policy_value(mdp, tables) for tables in of_days]
        constants = [schedules[0], schedules[13], schedules[26]]
        values = ps.compare(mdp, policies=["optimal-daily"], epsilons=[0, 0.01, 1, 50])["value"].to_numpy()
        assert (values >= max(constants) - 1e-12).all()
        assert values[0] <= max(schedules) + 1e-12
        assert values[-1] == pytest.approx(plan(mdp).value)


# What is hidden.


def courses(mdp, tables):
    """q(a|s) = prod_t p_t(a_t|s_t), (S^H, k^H): of all courses of states, whether or not one can follow the other."""
    joint = np.ones((1, 1))
    for table in tables:
        joint = np.einsum("xh,sa->xsha", joint, table).reshape(len(joint) * mdp.n_states, -1)
    return joint


def largest_log_ratio(joint):
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(joint)
        return float(np.nanmax([logs - other for other in logs]))


@pytest.mark.parametrize(
    "name", ["exponential", "exponential-fitted", "randomized-response", "optimal-daily", "best-fixed", "uniform"]
)
@pytest.mark.parametrize("total", [0.6, 3.0])
def test_a_row_that_hides_the_course_does_so_for_all_pairs_of_courses(name, total):
    mdp = process(7)
    row = ps.compare(mdp, policies=[name], total_epsilons=[total]).iloc[0]
    policy = make_policy(catalogue_name(name))
    if policy.uses_epsilon:
        (found,) = planner_of(mdp).within(policy, [total], 0.0)
        tables, value = replayed(mdp, found)
    else:
        # Which action all get makes no difference to what is hidden.
        tables = [np.eye(3)[[0] * 4] if name == "best-fixed" else np.full((4, 3), 1 / 3)] * HORIZON
        value = row["value"]
    assert row["value"] == pytest.approx(value) and row["hides"] == "course"
    # 64 courses of states, 27 of actions; the loss is attained, so that nothing less could be said.
    assert largest_log_ratio(courses(mdp, tables)) == pytest.approx(row["total_spent"], abs=1e-9)
    assert row["total_spent"] <= total


@pytest.mark.parametrize("name", ["exponential-fitted", "randomized-response", "optimal"])
def test_with_a_delta_the_courses_of_states_are_within_both(name):
    mdp, delta = chain_of_days(0, horizon=3), 0.02
    for found in planner_of(mdp).within(make_policy(name), (1.0, 4.0), delta):
        joint = courses(mdp, replayed(mdp, found)[0])
        assert worst_divergence(joint, total_spent(found, delta)) <= delta + 1e-12
    # At the larger total delta is used: the losses themselves add up to more.
    assert largest_log_ratio(joint) > total_spent(found, delta) + 0.01


def log_odds_of_last_states(mdp, tables, actions):
    """Of each state on the last day: at admission, given the treatments as if all got them, and as an observer infers.

    The last by following every course of states that the published treatments allow.
    """
    moves = moves_of(mdp)
    expected, given, inferred = (mdp.initial.copy() for _ in range(3))
    for day, table in enumerate(tables):
        inferred = inferred * table[:, actions[day]]
        if day + 1 < len(tables):
            expected = np.einsum("s,sa,sat->t", expected, table, moves)
            given, inferred = given @ moves[:, actions[day]], inferred @ moves[:, actions[day]]
    return [np.log(mass) - np.log(mass.sum() - mass) for mass in (expected, given, inferred)]


def test_beliefs_over_days_are_within_the_loss_of_the_prior_given_the_treatments_and_not_of_that_at_admission():
    mdp = chain_of_days(3)
    policy = make_policy("randomized-response", epsilon=0.1)
    row = ps.compare(mdp, policies=[policy], epsilons=[0.1], continuation="optimal").iloc[0]
    tables = [policy.probabilities(DecisionProblem(q, mdp.initial, AnyRecord())) for q in plan(mdp).q_values]
    moved, beside = [], []
    for actions in product(range(3), repeat=4):
        expected, given, inferred = log_odds_of_last_states(mdp, tables, actions)
        moved.append(np.abs(inferred - given).max())
        beside.append(np.abs(inferred - expected).max())
    assert 0.05 < max(moved) <= row["total_epsilon"] and row["hides"] == "course"
    assert max(beside) > 2 * row["total_epsilon"]


def test_what_hides_no_course_does_not_say_so(mdp):
    def hides(of, **options):
        table = ps.compare(of, policies=["greedy", "uniform", "exponential"], **options)
        return table.drop_duplicates("policy")["hides"].tolist()

    assert hides(mdp, epsilons=[1]) == hides(mdp, total_epsilons=[1]) == ["nothing", "course", "course"]
    assert hides(mdp, epsilons=[np.inf])[2] == hides(mdp, total_epsilons=[np.inf])[2] == "nothing"
    # For ever: each state is hidden, and no course.
    assert hides(process(horizon=None), epsilons=[1]) == ["nothing", "course", "one state"]
    with pytest.warns(ps.InfiniteLossWarning):
        assert hides(process(admissible=MASK), epsilons=[1]) == ["nothing"] * 3
    assert hides(process(admissible=MASK, mask_public=True), epsilons=[1]) == ["nothing", "course", "course"]


# Totals.


def total_spent(course, delta):
    return composed_in_classes(course.uses, delta)[1]


def planner_of(mdp):
    return PrivatePlanner(ProcessEvaluator(mdp, optimal_course(mdp)))


def chain_of_days(seed, horizon=4, **options):
    """Three states and one that absorbs, three actions: what is published goes on to the last day."""
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.full(4, 0.5), size=(4, 3))
    rewards = rng.normal(size=(4, 3))
    moves[3], rewards[3] = np.eye(4)[3], 0.0
    return TabularMDP(moves, rewards, [*rng.dirichlet(np.ones(3)), 0.0], horizon=horizon, **options)


def test_a_table_that_claims_half_its_loss_is_seen_in_what_is_published(monkeypatch):
    mdp, honest = chain_of_days(1), MaskedProblem.uses
    monkeypatch.setattr(
        MaskedProblem,
        "uses",
        lambda *day: tuple(use._replace(loss=day[1].guarantee / 4) for use in honest(*day)),
    )
    (found,) = planner_of(mdp).within(make_policy("randomized-response"), [2.0], 0.0)
    joint = published(mdp, replayed(mdp, found)[0])
    assert worst_divergence(joint, total_spent(found, 0.0)) > 0.01


def test_epsilon_goes_to_the_day_on_which_it_buys_most():
    # Only the second of four days pays for the right action; every state is as likely on each day.
    moves = np.full((2, 2, 2), 0.5)
    day = np.kron(np.eye(4, k=1), moves.transpose(1, 0, 2).reshape(2, 2, 2)[0])
    moves = np.stack([day, day], axis=1)
    for state in (6, 7):
        moves[state, :, state] = 1.0
    rewards = np.zeros((8, 2))
    rewards[2:4] = np.eye(2)
    mdp = TabularMDP(moves, rewards, [0.5, 0.5, *[0.0] * 6], horizon=4)
    (found,) = planner_of(mdp).within(make_policy("randomized-response"), [2.0], 0.0)
    assert [policy.epsilon if policy.uses_epsilon else 0.0 for policy in found.policies] == [0, 2.0, 0, 0]
    assert found.value == pytest.approx(1 / (1 + math.exp(-2.0)))
    row = ps.compare(mdp, policies=["randomized-response"], total_epsilons=[2.0]).iloc[0]
    assert (row["epsilon"], row["total_epsilon"], row["total_spent"], row["delta"]) == (2.0, 2.0, 2.0, 0.0)


def test_what_is_bought_gains_at_least_half_of_the_best_that_the_budget_buys():
    rng = np.random.default_rng(0)
    for _ in range(30):
        gains, costs = rng.normal(size=(3, 4)), rng.random((3, 4))
        bought = buy_most(gains, costs, 1.0)
        chosen = [(gains[day, level], costs[day, level]) for day, level in enumerate(bought) if level >= 0]
        gain, cost = np.sum(chosen, axis=0) if chosen else (0.0, 0.0)
        best = 0.0
        for levels in product(range(-1, 4), repeat=3):
            pairs = [(gains[day, level], costs[day, level]) for day, level in enumerate(levels) if level >= 0]
            total = np.sum(pairs, axis=0) if pairs else (0.0, 0.0)
            best = max(best, total[0] if total[1] <= 1.0 else 0.0)
        assert cost <= 1.0 + 1e-12 and gain >= best / 2 - 1e-12


def test_policies_without_an_epsilon_have_a_row_for_each_total(mdp):
    calls = []
    names = ["greedy", "best-fixed", "uniform", "randomized-response"]
    table = ps.compare(mdp, policies=names, total_epsilons=[1, 3], delta=1e-3, advance=lambda: calls.append(1))
    assert table["policy"].tolist() == [name for name in names for _ in range(2)] and len(calls) == 8
    assert table["total_epsilon"].tolist() == [1, 3] * 4
    assert table["total_spent"].tolist()[:6] == [np.inf, np.inf, 0, 0, 0, 0]
    assert (table["total_spent"][6:] <= table["total_epsilon"][6:]).all()
    one = ps.compare(mdp, policies=names[:3], epsilons=[1]).set_index("policy")
    assert table.groupby("policy")["value"].first()[names[:3]].tolist() == one.loc[names[:3], "value"].tolist()


def test_totals_are_refused_where_no_total_can_hold():
    with pytest.raises(ValueError, match=r"total_epsilons need a horizon: .* Give the process a horizon"):
        ps.compare(process(horizon=None), total_epsilons=[1])
    with pytest.raises(ValueError, match=r"total_epsilons cannot be kept: .*Give mask_public=True"):
        ps.compare(process(admissible=MASK), total_epsilons=[1])
    with pytest.raises(ValueError, match="are for a process of several decisions"):
        ps.compare(DecisionProblem(np.eye(2), [0.5, 0.5], AnyRecord()), total_epsilons=[1])


class Sketched:
    """A process that is searched on another one."""

    def __init__(self, mdp, other):
        self._mdp, self.sketch = mdp, lambda _: other

    def __getattr__(self, name):
        return getattr(self._mdp, name)


@pytest.mark.parametrize("name", ["exponential", "optimal"])
def test_what_a_sketch_finds_is_scaled_to_what_the_process_affords(name):
    mdp, other = chain_of_days(1), chain_of_days(4)
    values = []
    for found in planner_of(Sketched(mdp, other)).within(make_policy(name), (0.5, 2.0, 6.0), 0.0):
        tables, value = replayed(mdp, found)
        assert found.value == pytest.approx(value, rel=1e-12)
        assert worst_divergence(published(mdp, tables), total_spent(found, 0.0)) <= 1e-12
        values.append((total_spent(found, 0.0), value))
    assert [spent <= total + 1e-9 for (spent, _), total in zip(values, (0.5, 2.0, 6.0), strict=True)] == [True] * 3
    assert values[0][1] <= values[1][1] <= values[2][1] and values[2][0] > 2.0


def test_without_any_limit_a_total_is_the_best_there_is(mdp):
    row = ps.compare(mdp, policies=["exponential"], total_epsilons=[math.inf]).iloc[0]
    assert row["value"] == pytest.approx(plan(mdp).value) and row["total_spent"] == math.inf


# The smallest epsilon.


def test_the_smallest_epsilon_of_a_process_meets_the_demand_and_just_below_it_does_not(mdp):
    epsilon = ps.smallest_epsilon(mdp, "randomized-response", keep=0.6)
    kept = ps.compare(mdp, policies=["randomized-response"], epsilons=[epsilon * (1 - 2e-4), epsilon])["benefit_kept"]
    assert kept[0] < 0.6 <= kept[1]
    assert ps.smallest_epsilon(mdp, "optimal-daily", keep=0.0) == 0.0
    with pytest.raises(ValueError, match="give max_loss, keep or max_extra_lead"):
        ps.smallest_epsilon(mdp, "exponential")
    with pytest.raises(ValueError, match="needs a process with an outcome that leads"):
        ps.smallest_epsilon(mdp, "exponential", max_extra_lead=0.1)
