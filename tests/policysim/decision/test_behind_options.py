"""The tables behind the options: each number is that of the table it comes from, looked up without their code."""

import math
from dataclasses import replace

import numpy as np
import pytest
from decisions import results_of
from small_studies import STUDY, write_small_study

import policysim as ps
from policysim.decision.behind_options import TIMES, prices_table, titled_cells
from policysim.decision.beliefs import LEAST_MOVED
from policysim.decision.decision_answer import answer_tables


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    text = STUDY.replace('"exponential", "ran', '"optimal", "exponential", "ran')
    # At a smaller ε the optimum is one treatment for all, which moves no belief.
    text = text.replace("epsilon = 1.0", "epsilon = 4.0", 1)
    return ps.load_study(write_small_study(tmp_path_factory.mktemp("small"), text))


@pytest.fixture(scope="module")
def problem(study):
    return ps.build_problem(study)


@pytest.fixture(scope="module")
def found(study, problem):
    return results_of(study, problem, prices=True)


@pytest.fixture(scope="module")
def tables(study, found):
    return answer_tables(found, study=study)


def wide(table):
    """Its values by row, a column for each of its columns."""
    return table.pivot(index="row", columns="option", values="value")


def same(one, other):
    assert one.to_numpy(dtype=float) == pytest.approx(other.to_numpy(dtype=float), rel=1e-12, nan_ok=True)


def test_every_mechanism_has_its_numbers_of_the_comparison(tables, found):
    mine, rows = wide(tables["policies"]), found.tables["comparison"]
    everyone = rows[(rows["epsilon"] == 4) & (rows["group"] == "all")].set_index("policy").loc[mine.index]
    assert set(tables["policies"]["epsilon"]) == {4.0}
    for option, column in (
        ("lost", "loss"),
        ("kept", "benefit_kept"),
        ("lead", "expected_death"),
        ("spent", "epsilon_spent"),
        ("guesses", "guess_rate"),
        ("least", "least_loss"),
    ):
        same(mine[option], everyone[column])
    searched = found.tables["search"].set_index("policy").reindex(mine.index)
    same(mine["beats"], searched["better_from"])
    same(mine["keeps"], searched["keeps_from"])


def test_features_of_the_same_price_share_a_row_and_prices_are_against_one_for_all(tables, found, problem, study):
    mine, prices = wide(tables["prices"]), found.tables["price-list"].set_index("hides")
    titles = tables["prices"].drop_duplicates("row").set_index("row")["title"]
    shared = {row: [name.replace(" ", "_") for name in title.split(", ")] for row, title in titles.items()}
    names = [name.replace("whole_record", "whole record") for names in shared.values() for name in names]
    assert sorted(names) == sorted(prices.index)
    for row, group in shared.items():
        for name in group:
            price = prices.loc[name.replace("whole_record", "whole record")]
            for option, column in (("lost", "loss"), ("kept", "benefit_kept"), ("lead", "extra_death")):
                assert mine.loc[row, option] == pytest.approx(price[column], abs=2e-6, nan_ok=True)
    lost = mine.loc[titles.index, "lost"].tolist()
    assert lost == sorted(lost, reverse=True)
    # By hand: the deaths of the optimum that hides one feature, less those of the best treatment for all.
    axis = problem.records.names.index("infected")
    hidden = problem.with_adjacency(ps.Sensitive(problem.records.shape, (axis,)))
    table = ps.make_policy("optimal", epsilon=study.epsilon).probabilities(hidden)
    died = problem.outcomes["death"]
    extra = problem.prior @ (table * died).sum(axis=1) - problem.prior @ died[:, problem.best_fixed_action]
    assert prices.loc["infected", "extra_death"] == pytest.approx(extra, abs=1e-9)


def test_features_of_other_prices_have_rows_of_their_own_however_small_utilities_are(found):
    prices = found.tables["price-list"]
    scaled = prices.assign(loss=prices["loss"] * 1e-7, extra_death=prices["extra_death"] * 1e-7)
    rows, small = (prices_table(each, found, 100_000, 3, shares=True)["row"] for each in (prices, scaled))
    assert rows.nunique() > 1
    assert small.tolist() == rows.tolist()


def test_an_observer_has_what_moves_by_two_of_100_or_more_farthest_first(tables, found):
    beliefs, seen = found.tables["beliefs"], tables["observer"]
    after = seen[seen["option"] == "after"].set_index("row")
    before = seen[seen["option"] == "before"].set_index("row")["low"]
    moved = {}
    for each in beliefs.to_dict("records"):
        change = max(each["before"] - each["least"], each["most"] - each["before"])
        moved[round(each["before"], 9), round(each["least"], 9), round(each["most"], 9)] = change
    printed = [
        (round(before[row], 9), round(low, 9), round(high, 9)) for row, low, high in after[["low", "high"]].itertuples()
    ]
    changes = [moved[key] for key in printed]
    assert min(changes) >= LEAST_MOVED
    assert changes == sorted(changes, reverse=True)
    # Of two levels one is there, of more each that moves.
    levels = beliefs.groupby("feature").size()
    assert len(printed) <= sum(1 if count == 2 else count for count in levels)
    far = beliefs[(beliefs["most"] - beliefs["before"]).combine(beliefs["before"] - beliefs["least"], max) >= 0.02]
    assert len(printed) >= far["feature"].nunique()


def test_redraws_and_prevalences_are_those_that_were_counted(tables, found):
    counted = tables["certainty"].set_index(["policy", "measure"])["better"]
    best = {f"for all: {row}": value for row, value in tables["best-for-all"][["row", "value"]].to_numpy()}
    assert set(best) < set(tables["redrawn"]["row"])
    for row in tables["redrawn"].itertuples():
        # Only treatments for all can be the best of these.
        expected = best.get(row.row, math.nan) if row.option == "best" else counted[row.row, row.option]
        assert row.value == pytest.approx(expected, nan_ok=True)
    assert "best-fixed" not in set(tables["redrawn"]["row"])
    told = found.tables["prevalence"].set_index(["policy", "factor"])["benefit_kept"]
    factors = {name: factor for factor, name in TIMES.items()}
    for row in tables["prevalences"].itertuples():
        assert row.value == told[row.row, factors[row.option]]


def test_the_method_has_the_numbers_of_the_problem(tables, problem):
    mine = tables["method"].set_index("row")["value"]
    u = problem.utilities
    assert (mine["records"], mine["treatments"]) == (problem.n_records, problem.n_actions)
    assert mine["sensitivity"] == pytest.approx(max(np.ptp(u[:, a]) for a in range(3)))
    stakes = np.ptp(u, axis=1)
    assert problem.prior[stakes <= mine["stake"] + 1e-12].sum() >= 0.5
    assert problem.prior[stakes < mine["stake"] - 1e-12].sum() <= 0.5


def test_a_table_of_nothing_has_its_columns():
    assert titled_cells([]).empty
    assert math.isnan(titled_cells([("a", "A", "value", 1.0, "plain", math.nan, math.nan)])["epsilon"][0])


@pytest.mark.parametrize("policies", [("exponential", "randomized-response"), ("optimal", "exponential"), ("greedy",)])
def test_one_private_choice_stands_in_all_tables(study, problem, policies):
    asked = replace(study, policies=policies)
    found = results_of(asked, problem)
    tables = answer_tables(found, study=asked)
    chosen = tables["columns"].query("option == 'private choice'").set_index("epsilon")["policy"]
    ways = found.tables["publishing"].query("way == 'private choice'").set_index("epsilon")["given"]
    assert ways.to_dict() == chosen[ways.index].to_dict()
    assert set(chosen) <= {*policies, "exponential"}
