"""The table that answers: its columns, rows and ranks, each cell of the ward against the definitions."""

import math

import numpy as np
import pandas as pd
import pytest

import policysim as ps
from envs.treatment_response import ResponseModel
from policies.problem import DecisionProblem
from policysim.decision.decision_answer import answer_tables
from policysim.decision.redraws import redrawn
from policysim.decision.results import Asked, results
from policysim.numbers import rounded_up, table_text
from policysim.output.screen import screen
from policysim.study.labels import Labels, labels_of
from policysim.study.options_table import decimals_of, options


def value_of(tables, row, option, epsilon, column="value"):
    table = tables["options"]
    found = table[(table["row"] == row) & (table["option"] == option) & (table["epsilon"] == epsilon)]
    assert len(found) == 1, (row, option, epsilon)
    return float(found[column].iloc[0])


def test_every_cell_of_the_ward_is_its_definition(ward):
    study, problem, tables = ward.study, ward.problem, ward.tables
    u, prior = problem.utilities, problem.prior
    best = u.max(axis=1)
    k = problem.n_actions
    response = ResponseModel(study.scenario)
    outcomes = {"death": problem.outcomes["death"]} | {
        name: np.stack(
            [np.broadcast_to(response.chance(name, a), study.scenario.space.shape).ravel() for a in range(k)], axis=1
        )
        for name in ("infected", "fever", "cough")
    }
    outcomes["costs"] = np.broadcast_to([0.0, 0.02, 0.05], u.shape)
    fixed = np.eye(k)[np.repeat(int((prior @ u).argmax()), len(u))]
    safest = np.eye(k)[np.repeat(int((prior @ outcomes["death"]).argmin()), len(u))]
    greedy = np.eye(k)[u.argmax(axis=1)]
    fixed_value, checked = float(prior @ (fixed * u).sum(axis=1)), 0
    for epsilon in study.epsilons:
        private = {name: ps.make_policy(name, epsilon=epsilon).probabilities(problem) for name in study.policies}
        values = {name: float(prior @ (p * u).sum(axis=1)) for name, p in private.items() if name != "best-fixed"}
        copy = ps.make_policy("randomized-response", epsilon=epsilon).probabilities(problem)
        given = {
            "one for all": (fixed, fixed),
            "fewest": (safest, safest),
            "private choice": (private[max(values, key=values.get)],) * 2,
            "exponential mechanism": (private["exponential-fitted"],) * 2,
            "noised copy": (greedy, copy),
            "each's best": (greedy, greedy),
            "exponential mechanism, textbook": (private["exponential"],) * 2,
        }
        assert list(dict.fromkeys(tables["options"]["option"])) == list(given)
        for option, (table, published) in given.items():
            value = float(prior @ (table * u).sum(axis=1))
            expected = {
                "loss": float(prior @ best) - value,
                "benefit kept": (value - fixed_value) / (float(prior @ best) - fixed_value),
                "right guesses": (
                    1 + max(abs(one - published).sum(axis=1).max() / 2 for one in np.unique(published, axis=0))
                )
                / 2,
            } | {name: float(prior @ (table * rates).sum(axis=1)) for name, rates in outcomes.items()}
            for row in set(tables["rows"]["row"]) & set(expected):
                assert value_of(tables, row, option, epsilon) == pytest.approx(expected[row], rel=1e-9, abs=1e-12)
                checked += 1
            if "belief" in set(tables["rows"]["row"]):
                low, high = bayes(problem, published, tables)
                assert value_of(tables, "belief", option, epsilon, "low") == pytest.approx(low, abs=1e-9)
                assert value_of(tables, "belief", option, epsilon, "high") == pytest.approx(high, abs=1e-9)
    assert checked >= 4 * 7 * len(study.epsilons)


def bayes(problem, published, tables):
    """The least and the largest belief in the level that is named, after a treatment."""
    names = tables["names"].set_index("key")["text"]
    has = np.zeros(problem.n_records)
    for feature in problem.records.features:
        codes, labels = problem.records.groups(feature.name)
        for place, label in enumerate(labels):
            if feature.in_words(label) == names["belief"]:
                has = (codes == place).astype(float)
    given = problem.prior @ published
    after = (problem.prior * has) @ published / np.where(given > 0, given, math.nan)
    return np.nanmin(after), np.nanmax(after)


def test_the_row_of_redraws_counts_them_at_the_stated_epsilon_only(ward):
    study, problem, tables = ward.study, ward.problem, ward.tables
    rows = tables["options"][tables["options"]["row"] == "better"]
    assert set(rows["epsilon"]) == {study.epsilon}
    policies = [study.policy(name, study.epsilon) for name in ("best-fixed", "greedy", "exponential-fitted")]
    drawn = redrawn(study, problem, policies).options.pivot(index="draw", columns="option", values="value")
    for option, name in (("each's best", "greedy"), ("exponential mechanism", "exponential-fitted")):
        assert value_of(tables, "better", option, study.epsilon) == (drawn[name] > drawn["best-fixed"] + 1e-12).sum()
    # One for all is judged as the best of those for all.
    of_all = drawn[[f"for all: {action}" for action in problem.actions]]
    best = (of_all.to_numpy().argmax(axis=1) == problem.fixed_values.argmax()).sum()
    assert value_of(tables, "better", "one for all", study.epsilon) == best > 0


def test_a_row_has_one_precision_and_each_cell_one_key(ward):
    table = ward.tables["options"]
    assert (table.groupby("row")["format"].nunique() == 1).all()
    assert not table.duplicated(["row", "option", "epsilon"]).any()


def small(outcomes=None, **kwargs):
    rng = np.random.default_rng(7)
    return DecisionProblem(
        rng.normal(size=(8, 3)), rng.dirichlet(np.ones(8)), ps.AnyRecord(), outcomes=outcomes or {}, **kwargs
    )


def tables_of(problem, policies=("optimal", "exponential-fitted"), *, epsilon=1.0, epsilons=(0.5, 1.0, 2.0), **kwargs):
    asked = Asked(tuple(ps.make_policy(name) for name in policies), epsilon, epsilons)
    return answer_tables(results(problem, Labels.of(problem), asked), **kwargs)


def test_at_most_two_outcomes_of_each_direction_and_the_lead_first():
    rng = np.random.default_rng(2)
    names = ["falls", "pain", "rash", "cough", "fever", "death", "stroke"]
    tables = tables_of(small({name: rng.random((8, 3)) / 10 for name in names}, lead="death"))
    rows = tables["rows"]
    assert (rows["row"].iloc[0], rows["section"].iloc[0]) == ("death", "lead")
    others = rows[rows["section"] == "count"]
    assert (others["moved"] < 0).sum() <= 2
    assert (others["moved"] > 0).sum() <= 2
    # Of those that move, the ones that move most.
    now = tables["comparison"].query("epsilon == 1 and group == 'all'").set_index("policy")
    moves = {n: now.loc["optimal", f"expected_{n}"] - now.loc["best-fixed", f"expected_{n}"] for n in names}
    for sign in (-1, 1):
        ranked = sorted((n for n in names if n != "death" and sign * moves[n] > 0), key=lambda n: -abs(moves[n]))
        assert [row for row in others["row"] if sign * moves[row] > 0] == ranked[:2]


def test_the_private_choice_is_the_best_at_each_epsilon_of_those_that_were_asked_for():
    tables = tables_of(small(), ["exponential-fitted", "randomized-response", "best-fixed", "uniform"])
    everyone = tables["comparison"].query("group == 'all'").set_index(["epsilon", "policy"])["value"]
    for row in tables["columns"].query("option == 'private choice'").itertuples():
        asked = ["exponential-fitted", "randomized-response"]
        assert row.policy == max(asked, key=lambda name: everyone[row.epsilon, name])


def test_named_policies_get_columns_up_to_six_in_all():
    names = ["optimal", "randomized-response", "permute-and-flip", "exponential-fitted"]
    columns = tables_of(small(), names, named=True)["columns"]
    options = list(dict.fromkeys(columns["option"]))
    # The textbook's mechanism stands beside the fitted one in the trace, without a column.
    assert options.pop() == "exponential mechanism, textbook"
    assert len(options) == 6
    assert options[-2:] == ["noised copy", "each's best"]
    assert "randomized-response" in options
    assert "randomized-response" not in set(tables_of(small(), names)["columns"]["option"])


@pytest.mark.parametrize("overlapping", [False, True])
def test_the_textbooks_mechanism_is_traced_and_explained_beside_the_fitted_one(overlapping):
    adjacency = ps.OneFeature((2, 4)) if overlapping else ps.AnyRecord()
    problem = ps.DecisionProblem(small().utilities, small().prior, adjacency)
    both, alone = (
        " ".join(screen(tables_of(problem, ["exponential", *more]), "decision").split())
        for more in (["exponential-fitted"], ["optimal"])
    )
    assert "exponential, textbook*" in both
    assert f"two records (Δ = {rounded_up(problem.sensitivity.value, 3)}), however rare; the fitted one's " in both
    assert ("floors and ceilings" in both) != overlapping
    assert "textbook" not in alone


def test_differences_are_those_of_the_printed_numbers(ward):
    tables = ward.tables
    for row in tables["differences"].itertuples():
        style = tables["options"].query("row == @row.row")["format"].iloc[0].split()
        count, places = (int(style[1]), int(style[2])) if style[0] == "counted" else (1, int(style[1]))
        one, private = (value_of(tables, row.row, option, row.epsilon) for option in ("one for all", "private choice"))
        assert row.value == pytest.approx((round(private * count, places) - round(one * count, places)) / count)


def test_an_epsilon_that_has_too_many_digits_is_rounded_up_first():
    tables = ps.report(small(), policies=["optimal"], epsilons=(0.5, 1.23456789)).tables
    assert set(tables["options"]["epsilon"]) == {0.5, 1.23457}
    fact = tables["facts"].set_index("row").loc["epsilon", "value"]
    assert fact == 1.23457
    spent = tables["comparison"].query("policy == 'optimal' and epsilon == 1.23457")["epsilon_spent"]
    assert spent.iloc[0] == pytest.approx(1.23457)


def test_no_share_of_the_benefit_unless_each_is_better(ward):
    study, problem, tables = ward.study, ward.problem, ward.tables
    assert "benefit kept" in set(tables["rows"]["row"])
    worse = pd.DataFrame([("greedy", "value", 100, 0, 200, "cannot be told")], columns=tables["certainty"].columns)
    table, rows, _ = options(
        tables["comparison"], tables["columns"], labels_of(study, problem), study.epsilon, certainty=worse
    )
    assert "benefit kept" not in set(rows["row"]) | set(table["row"])


def test_a_loss_is_next_to_nothing_only_below_one_in_a_million():
    """A choice that loses 0.000037 where others lose a thousand times as much."""
    shown = table_text(f"lost {decimals_of(np.array([1.2, 0.9]))}", 3.7e-5, 0.0, 0.0)
    assert float(shown) == pytest.approx(3.7e-5, rel=0.02)
    assert table_text("lost 3", 2e-7, 0.0, 0.0) == "≈ 0"


def test_no_share_is_said_of_what_is_printed_as_nothing():
    tables = tables_of(DecisionProblem(1e-13 * np.eye(4)[:, :3], np.full(4, 0.25), ps.AnyRecord()))
    assert "benefit kept" not in set(tables["options"]["row"])


def test_rare_events_are_counted_among_patients_written_out():
    """Two of ten million patients die with one treatment, and three with the other."""
    deaths = np.tile([2e-7, 3e-7], (8, 1))
    problem = DecisionProblem(-deaths, np.full(8, 1 / 8), ps.AnyRecord(), outcomes={"death": deaths}, lead="death")
    text = screen(tables_of(problem), "decision")
    assert "Per 10,000,000 patients: death" in text
    assert "≈ 0 more" not in text and "≈ 0 fewer" not in text
