"""Where to put the noise, against enumeration of all reports on a small study."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from small_studies import write_small_study

import policysim as ps
from examples.experiments.randomise_or_decide import (
    FIGURE,
    LIMIT,
    NOTABLE,
    OTHERS,
    POLICIES,
    RECORD,
    RESPONSE,
    Experiment,
    Hidden,
    crossings,
    curves,
    lookup,
    main,
    overtaking,
    percent,
    two_digits,
    two_digits_up,
)
from examples.reporting import REPORTS


@pytest.fixture(scope="module")
def constants(tmp_path_factory):
    return Experiment(
        study=write_small_study(tmp_path_factory.mktemp("small")).as_posix(),
        epsilons=(0.5, 2, 4, 8),
        hidden=(
            Hidden("infection", ("infected",)),
            Hidden("infection and age", ("infected", "age")),
            Hidden("everything"),
        ),
    )


@pytest.fixture(scope="module")
def problems(constants):
    return [constants.problem_of(hidden) for hidden in constants.hidden]


@pytest.fixture(scope="module")
def table(constants):
    return curves(constants)


def benefit(problem, value):
    best = float(problem.prior @ problem.utilities.max(axis=1))
    fixed = float((problem.prior @ problem.utilities).max())
    return (value - fixed) / (best - fixed)


def value_of_randomised_records(constants, hidden, problem, keep):
    """V by enumeration of every record and report; `keep` is the probability to report each hidden feature truly."""
    space = ps.load_study(constants.study).scenario.space
    axes = [space.axis(name) for name in hidden.features or space.names]
    records = list(itertools.product(*(range(size) for size in space.shape)))
    K = np.zeros((len(records), len(records)))
    for x, y in itertools.product(range(len(records)), repeat=2):
        if any(records[x][a] != records[y][a] for a in range(len(space.shape)) if a not in axes):
            continue
        K[x, y] = math.prod(
            keep[a] if records[x][a] == records[y][a] else (1 - keep[a]) / (space.shape[a] - 1) for a in axes
        )
    worth = K.T @ (problem.prior[:, None] * problem.utilities)  # (reports, actions): the Bayes decision takes the best
    return float(worth.max(axis=1).sum())


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_randomised_record_is_worth_what_enumeration_of_all_reports_says(
    constants, problems, table, place, epsilon
):
    hidden = constants.hidden[place]
    share = epsilon / len(hidden.features or constants.features)
    keep = [
        math.exp(share) / (math.exp(share) + size - 1) for size in ps.load_study(constants.study).scenario.space.shape
    ]
    value = value_of_randomised_records(constants, hidden, problems[place], keep)
    assert lookup(table, hidden.name, RECORD, epsilon) == pytest.approx(benefit(problems[place], value), abs=1e-10)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_two_coins_tell_the_truth_of_each_flag_three_times_of_four(constants, problems, table, place):
    hidden = constants.hidden[place]
    # All features of the small study have two levels.
    value = value_of_randomised_records(constants, hidden, problems[place], [0.75] * 5)
    coins = constants.two_coins(hidden)
    assert coins == pytest.approx((1, 2, 5)[place] * math.log(3))
    assert lookup(table, hidden.name, RECORD, coins) == pytest.approx(benefit(problems[place], value), abs=1e-10)


def test_nothing_is_above_the_limit_and_one_hidden_flag_reaches_it(table):
    wide = table.pivot(index=["hidden", "epsilon"], columns="policy", values="benefit_kept")
    assert (wide.max(axis=1) <= wide[LIMIT] + 1e-9).all()
    # Kairouz, Oh & Viswanath 2016: for two values, randomised response is optimal whatever is done with it.
    one = wide.loc["infection"]
    assert np.allclose(one[RECORD], one[LIMIT], atol=1e-9)


def response_benefit(problem, epsilon):
    """In closed form: the best action with e^epsilon times the probability of each other one."""
    odds, k = math.exp(epsilon), problem.n_actions
    best = float(problem.prior @ problem.utilities.max(axis=1))
    others = float(problem.prior @ problem.utilities.sum(axis=1)) - best
    return benefit(problem, (odds * best + others) / (odds + k - 1))


def test_curves_cross_where_the_crossings_say(constants, problems, table):
    found = crossings(constants, table)
    crossed = [one for one in found if one.by]
    assert crossed, "the small study must have a crossing, or this test shows nothing"
    for one in crossed:
        problem = problems[constants.hidden.index(one.hidden)]
        # The root is known to 1 % of epsilon: on either side the sign must be right.
        leads = []
        for epsilon in (one.overtaken / 1.02, one.overtaken * 1.02):
            share = epsilon / len(one.hidden.features or constants.features)
            keep = [math.exp(share) / (math.exp(share) + 1)] * 5
            record = benefit(problem, value_of_randomised_records(constants, one.hidden, problem, keep))
            other = curves_at(problem, epsilon)
            leads.append(other - record - NOTABLE)
        assert leads[0] < 0 < leads[1]


def curves_at(problem, epsilon):
    """The best of the other policies: the response in closed form, the fitted mechanism as `compare` has it."""
    fitted = ps.compare(problem, policies=[OTHERS[0]], epsilons=[epsilon])["benefit_kept"].item()
    return max(fitted, response_benefit(problem, epsilon))


def test_response_on_the_decision_keeps_as_much_as_two_coins_where_it_is_said_to(constants, problems, table):
    for one in crossings(constants, table):
        problem = problems[constants.hidden.index(one.hidden)]
        keep = lookup(table, one.hidden.name, RECORD, one.coins)
        # found to 1e-4 relative, from above
        assert response_benefit(problem, one.same) >= keep - 1e-9
        assert response_benefit(problem, one.same / 1.001) < keep


def test_where_nothing_overtakes_it_is_said(table, problems):
    rows = table[(table["hidden"] == "infection") & (table["policy"].isin([RECORD, *OTHERS]))].copy()
    rows.loc[rows["policy"] == RECORD, "benefit_kept"] = 1.0
    assert overtaking(problems[0], rows) == (math.inf, "")


def test_the_report_has_the_numbers_of_its_table(constants, table, tmp_path):
    main(constants, tmp_path)
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    drawn = pd.read_csv(tmp_path / "figures" / f"{FIGURE}.csv")
    assert drawn["benefit_kept"].to_numpy() == pytest.approx(table["benefit_kept"].to_numpy(), rel=1e-6, abs=1e-6)
    # A star marks two coins in every panel.
    marked = drawn[drawn["two_coins"]]
    assert (marked["hidden"].tolist(), set(marked["policy"])) == ([one.name for one in constants.hidden], {RECORD})
    for one in constants.hidden:
        coins = constants.two_coins(one)
        shares = [percent(lookup(table, one.name, policy, 1.0)) for policy in POLICIES]
        assert f"| {one.name} | {' | '.join(shares)} |" in page
        spent = two_digits(lookup(table, one.name, RECORD, coins, "epsilon_spent"))
        others = [percent(lookup(table, one.name, policy, coins)) for policy in (RESPONSE, LIMIT)]
        shares = [percent(lookup(table, one.name, RECORD, coins)), spent, *others]
        assert f"| {one.name} | {coins:.2f} | {' | '.join(shares)} |" in page
        assert f"{one.name} {percent(lookup(table, one.name, RECORD, 1.0))} against" in page
    claim = pd.read_csv(tmp_path / "comparison.csv").iloc[0]
    # five features at ln 3
    assert (claim["agreement"], claim["ours"]) == ("erratum", "5 × 1.0986 = 5.49")


def test_an_epsilon_that_is_enough_is_rounded_up():
    assert [two_digits_up(value) for value in (3.21, 3.2, 0.0501, 19.1, math.inf)] == ["3.3", "3.2", "0.051", "20", "∞"]


def test_the_experiment_hides_the_sets_that_it_names():
    experiment = Experiment()
    assert [len(hidden.features or experiment.features) for hidden in experiment.hidden] == [1, 9, 7, 8, 18]
    assert experiment.two_coins(experiment.hidden[-1]) == pytest.approx(18 * math.log(3))
    assert experiment.epsilon in experiment.epsilons


def test_the_committed_numbers_are_of_these_sets():
    table = pd.read_csv(REPORTS / "randomise-or-decide" / "figures" / f"{FIGURE}.csv")
    experiment = Experiment()
    assert list(dict.fromkeys(table["hidden"])) == [hidden.name for hidden in experiment.hidden]
    assert {experiment.epsilon, *experiment.epsilons} <= set(table["epsilon"])
