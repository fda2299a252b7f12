"""What is chosen, and the cells that say it: against independent formulas, and never against a verdict."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from small_studies import write_small_study

import policysim as ps
from policysim.cli.main import main
from policysim.decision.choice_answer import LIMIT, choice_tables, choice_verdict, decided
from policysim.decision.choice_question import answer_of_choices
from policysim.decision.choose import Wish, choose, rows_of
from policysim.output.screen import screen
from policysim.study.cells import Cells
from policysim.study.certainty import certainty
from policysim.study.labels import Labels
from policysim.study.options_table import EACH, ONE

POLICIES = ["optimal", "randomized-response", "exponential"]


def holds_of(tables):
    return dict(tables["verdict"].itertuples(index=False, name=None))


def chosen_of(tables):
    lines = tables["lines"]
    return lines.loc[lines["chosen"], "option"].tolist()


def test_the_cells_of_every_option_are_what_its_table_of_probabilities_gives(ward):
    study, problem = ward.study, ward.problem
    wish = Wish(keep=0.2, at_most={"symptoms": "one for all"})
    choices = choose(problem, wish, POLICIES)
    tables = answer_of_choices(study, problem, choices).options
    prior, utilities = problem.prior[:, None], problem.utilities
    fixed = np.eye(problem.n_actions)[np.full(problem.n_records, (prior * utilities).sum(axis=0).argmax())]
    safest = np.eye(problem.n_actions)[np.full(problem.n_records, (prior * problem.outcomes["death"]).sum(0).argmin())]
    best = np.eye(problem.n_actions)[utilities.argmax(axis=1)]
    demand = wish.demand(problem)
    given = {ONE: fixed, f"for all: {problem.actions[int(safest[0].argmax())]}": safest, EACH: best}
    given |= {name: policy.probabilities(problem) for name, policy in choices.mechanisms.items()}
    assert set(tables["lines"]["option"]) == {LIMIT, *given}
    bounded = ps.make_policy("optimal", epsilon=choices.mechanisms["optimal"].epsilon, at_most=dict(demand.at_most))
    assert given["optimal"] == pytest.approx(bounded.probabilities(problem))
    cells = tables["options"].set_index(["option", "row"])["value"]
    for option, table in given.items():
        deaths, symptoms = ((prior * table * problem.outcomes[name]).sum() for name in ("death", "symptoms"))
        lost = (prior * (best - table) * utilities).sum()
        gain = (prior * (best - fixed) * utilities).sum()
        expected = {"death": deaths, "symptoms": symptoms, "loss": lost, "benefit kept": 1 - lost / gain}
        assert cells[option][list(expected)].to_dict() == pytest.approx(expected, abs=1e-12)
        more = round(1e5 * deaths) - round(1e5 * (prior * fixed * problem.outcomes["death"]).sum())
        assert cells[option, "more of the lead"] * 1e5 == pytest.approx(more, abs=1e-6)
    # One precision a column, but for ε.
    styles = tables["options"].groupby("row")["format"].nunique()
    assert styles.drop("epsilon").eq(1).all()


@pytest.mark.usefixtures("all_redraws")
def test_the_first_that_is_told_to_be_better_is_chosen_and_not_the_first_that_does_it(ward):
    study, problem = ward.study, ward.problem
    choices = choose(problem, Wish(keep=0.2, at_most={"symptoms": "one for all"}), POLICIES)
    tables = answer_of_choices(study, problem, choices).options
    verdicts = tables["certainty"].query("measure == 'value'").set_index("policy")
    assert (choices.least["policy"], verdicts.loc["optimal", "verdict"]) == ("optimal", "cannot be told")
    assert verdicts.loc["randomized-response", "better"] >= 180
    assert chosen_of(tables) == ["randomized-response"]
    remarks = tables["lines"].set_index("option")["remark"]
    assert remarks[["optimal", "randomized-response", "exponential"]].tolist() == [
        "cannot be told",
        "chosen",
        "larger ε",
    ]


@pytest.mark.parametrize("keep", ["0%", "20%"])
def test_redraws_decide_between_a_mechanism_and_one_for_all(ward, keep):
    study, problem = ward.study, ward.problem
    choices = choose(problem, Wish(keep=float(keep.strip("%")) / 100), POLICIES)
    tables = answer_of_choices(study, problem, choices).options
    assert chosen_of(tables) == [ONE]
    assert holds_of(tables)["meets"] == (keep == "0%")
    assert holds_of(tables)["untold"] == (keep == "20%")
    printed = " ".join(screen(tables, "choice").split())
    assert "Cough syrup for all: whoever sees it learns nothing." in printed
    assert ("Cannot be told: it loses less utility in " in printed) == (keep == "20%")


WISHES = [Wish(keep=0.3), Wish(max_loss=0.4), Wish(max_extra_lead=0.0), Wish(keep=0.5, max_guess=0.8), Wish(keep=-1)]


@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_nothing_is_chosen_against_its_verdict(wish):
    """Redraws in which each mechanism is better with a chance of its own, many for one choice: it takes longest."""
    rng = np.random.default_rng(4)
    deaths = {"death": rng.random((4, 3)) / 10}
    utilities, prior = rng.normal(size=(4, 3)), rng.dirichlet(np.ones(4))
    problem = ps.DecisionProblem(utilities, prior, ps.AnyRecord(), outcomes=deaths, lead="death")
    choices = choose(problem, wish, POLICIES)
    values = {"best-fixed": 0.0, "greedy": 1.0}
    for _ in range(4):
        chances = {name: rng.choice([0.0, 0.5, 0.88, 0.92, 1.0]) for name in choices.mechanisms}
        rows = [
            (place, option, values.get(option, 1.0 if place < 50 * chances.get(option, 0) else -1.0), 0.0)
            for place in range(50)
            for option in [*values, *choices.mechanisms]
        ]
        drawn = pd.DataFrame(rows, columns=["draw", "option", "value", "expected_death"])
        check_choice(problem, choices, chances, drawn)


def check_choice(problem, choices, chances, drawn):
    """What is decided is what the redraws say, in the verdict and in the tables."""
    sure = certainty(drawn, "best-fixed")
    row, holds = decided(choices, sure), choice_verdict(choices, sure)
    allowed = [each for each in rows_of(choices.needs) if each["allowed"]]
    meets = choices.for_all["allowed"].any()
    better = [each["policy"] for each in allowed if chances[each["policy"]] >= 0.9]
    assert (row is None) == (not meets and not allowed)
    assert holds["private"] == (not meets and bool(better))
    if holds["private"]:
        assert row["policy"] == better[0]
        deaths = problem.prior @ problem.outcomes["death"]
        given = choices.mechanisms[better[0]].probabilities(problem)
        more = 1e5 * ((problem.prior[:, None] * given * problem.outcomes["death"]).sum() - deaths.min())
        assert holds["costs lead"] == (more > 1e-3)
    if row is not None and not holds["private"]:
        assert row["epsilon"] == 0
        assert row["allowed"] or holds["untold"]
    # What there is one wording of, holds once.
    assert sum(holds[name] for name in ("private", "published", "one for all", "cannot", "open")) == 1
    assert sum(holds[name] for name in ("meets", "untold", "redrawn", "as stated")) == (row is not None)
    tables = choice_tables(problem, choices, Labels.of(problem), drawn)
    assert chosen_of(tables) == ([] if row is None else [ONE if row["policy"] == "best-fixed" else row["policy"]])
    lines = screen(tables, "choice").splitlines()
    assert len(lines) <= 26
    assert max(map(len, lines)) <= 100


def test_without_redraws_a_choice_is_as_stated():
    problem = ps.DecisionProblem(np.eye(2), [0.5, 0.5], ps.AnyRecord())
    choices = choose(problem, Wish(keep=0.8), ["optimal"])
    tables = choice_tables(problem, choices, Labels.of(problem))
    assert {name for name, holds in holds_of(tables).items() if holds} == {"private", "as stated", "limit"}
    cell = Cells(tables)
    assert (cell("facts", "epsilon"), cell("facts", "limit")) == ("2.2", "2.1")
    assert "better" not in set(tables["options"]["row"])


def test_no_share_of_a_tiny_gain_is_a_cell_and_what_is_not_used_has_no_price():
    shape = ps.Sensitive((2, 3), (1,))
    tiny = ps.DecisionProblem([[1.0, 0.0], [1.0, 0.0], [0.0, 0.01]] * 2, np.full(6, 1 / 6), shape)
    tables = choice_tables(tiny, choose(tiny, Wish(keep=0.5), POLICIES), Labels.of(tiny))
    assert "benefit kept" not in set(tables["options"]["row"])
    same = ps.DecisionProblem([[0.0, 1.0], [2.0, 0.0], [0.0, 1.0]] * 2, np.full(6, 1 / 6), ps.Sensitive((2, 3), (0,)))
    tables = choice_tables(same, choose(same, Wish(keep=0.8), POLICIES), Labels.of(same))
    assert "Model      Under this model no choice of a treatment depends on what is hidden" in screen(tables, "choice")


@pytest.mark.parametrize(
    "wish",
    [
        Wish(keep=0.8025, max_guess_rate=0.99),
        Wish(max_loss=0.2, max_guess=0.999),
        Wish(keep=0.2, max_extra_lead=0.0001, at_most={"symptoms": "one for all", "death": 0.001}),
        Wish(keep=0.9, max_guess=0.55),
    ],
    ids=str,
)
def test_a_screen_of_every_wish(wish, ward):
    study, problem = ward.study, ward.problem
    choices = choose(problem, wish, [*POLICIES, "exponential-fitted", "permute-and-flip", "randomized-features"])
    tables = answer_of_choices(study, problem, choices).options
    text = screen(tables, "choice")
    lines = text.splitlines()
    assert len(lines) <= 26
    assert max(map(len, lines)) <= 100
    assert "nan" not in text
    asked = " ".join(text.split()).partition("Asked for")[2]
    assert ("keep 80.25 % of the benefit" in asked) == (wish.keep == 0.8025)
    assert ("lose at most 0.2 of" in asked) == (wish.max_loss == 0.2)
    assert ("guesses right, whatever the mechanism (ε ≤ " in asked) == (wish.max_guess is not None)


def test_the_command_answers_first_with_the_epsilon_beside_its_guess_rate(capsys, tmp_path):
    study = str(write_small_study(tmp_path / "study"))
    options = ("choose", study, "--keep", "80%", "--max-guess-rate", "99%")
    assert main([*options]) == 0
    printed = capsys.readouterr().out
    assert main([*options, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    first = document["rows"][0]
    assert document["chosen"] == first["policy"]
    assert f"“{first['policy']}” at ε = {first['epsilon']}" in printed
    for row in document["rows"]:
        cells = next(line.split() for line in printed.splitlines() if line.split()[:1] == [row["policy"]])
        assert float(cells[1]) == row["epsilon"]
        assert f"{math.ceil(1000 * row['guess_rate'] - 1e-6) / 10}" in cells
        assert row["guess_rate"] <= row["right_guesses"]
    assert "only ε says what several reveal together" in " ".join(printed.split())
    assert re.search(r"least ε is the least found in steps of 15\s%", " ".join(printed.split()))
