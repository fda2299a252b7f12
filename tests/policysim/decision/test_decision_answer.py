"""The answer to one decision: screens of every kind of problem, and no option recommended against its verdict."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from decisions import results_of, tables_of
from small_studies import write_small_study

import policysim as ps
from envs import record_space
from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive
from policysim.decision.decision_answer import answer_tables
from policysim.decision.redraws import Redrawn
from policysim.decision.results import Asked, printable, results
from policysim.output.answer_page import MOVING, moving
from policysim.output.screen import page_part, screen, slots
from policysim.study.cells import Cells
from policysim.study.certainty import recommended, restated, safest_option, verdict
from policysim.study.labels import Labels

SPACE = record_space({"age": ["young", "middle", "old"], "sex": [0, 1], "ill": [0, 1]})
RNG = np.random.default_rng(3)
UTILITIES, PRIOR = RNG.normal(size=(12, 3)), RNG.dirichlet(np.ones(12))
DEATHS = {"deaths": RNG.random((12, 3)) / 100}
MASK = np.ones((12, 3), dtype=bool)
MASK[:4, 2] = False
THREE = ("exponential", "randomized-response", "optimal")


def problem_of(adjacency, utilities=UTILITIES, **kwargs):
    return DecisionProblem(utilities, PRIOR, adjacency, **kwargs)


def computed(problem, policies=THREE, by=(), epsilon=1.0):
    asked = Asked(tuple(ps.make_policy(name) for name in policies), epsilon, (1.0, 2.0), tuple(by))
    return results(problem, Labels.of(problem), printable(asked))


def answer(problem, policies=THREE, by=(), *, epsilon=1.0, **kwargs):
    return answer_tables(computed(problem, policies, by, epsilon), **kwargs)


CASES = {
    "features and groups": lambda: answer(
        problem_of(AnyRecord(), records=SPACE, outcomes=DEATHS, lead="deaths"), by=["age", "sex"]
    ),
    "one-feature": lambda: answer(
        problem_of(OneFeature(SPACE.shape), records=SPACE, outcomes=DEATHS, lead="deaths"), by=["age"]
    ),
    "sensitive": lambda: answer(
        problem_of(Sensitive(SPACE.shape, (2,)), records=SPACE, outcomes=DEATHS, lead="deaths"), by=["age"]
    ),
    "masks": lambda: answer(
        problem_of(Sensitive(SPACE.shape, (1, 2)), records=SPACE, outcomes=DEATHS, lead="deaths", admissible=MASK),
        by=["age"],
    ),
    "only one for all": lambda: answer(problem_of(AnyRecord()), ["best-fixed"]),
    "policies by name": lambda: answer(
        problem_of(AnyRecord(), outcomes=DEATHS, lead="deaths"),
        ["permute-and-flip", "optimal-safe", "optimal"],
        named=True,
    ),
    "at zero": lambda: answer(problem_of(AnyRecord()), epsilon=0.0),
    "at infinity": lambda: answer(problem_of(AnyRecord()), epsilon=math.inf),
}


@cache
def tables_of_case(case):
    return CASES[case]()


@pytest.mark.parametrize("case", CASES)
def test_a_screen_of_every_kind_of_problem(case):
    text = screen(tables_of_case(case), "decision")
    lines = text.splitlines()
    assert len(lines) <= 26
    assert max(map(len, lines)) <= 100
    names = [line.split("  ")[0].strip() for line in lines]
    assert [name for name in names if name in SIX] == SIX
    assert "nan" not in text


ODD = ["a", "“b” <i>&", "covid-19 " * 6, "名前" * 12]


def test_odd_names_of_policies_and_treatments_fit_the_screen():
    """Six mechanisms by name, and titles that are long, or markup; warnings come on top."""
    rng = np.random.default_rng(5)
    problem = DecisionProblem(rng.normal(size=(12, 4)), PRIOR, AnyRecord(), ODD, records=SPACE)
    named = ["optimal", "exponential-fitted", "permute-and-flip", "randomized-response", "exponential", "uniform"]
    tables = answer(problem, named, named=True, warnings=["something " * 20])
    lines = screen(tables, "decision").splitlines()
    assert lines[0].startswith("Beware: something")
    first = next(place for place, line in enumerate(lines) if line.startswith("Problem: "))
    # Two lines more for the textbook's exponential mechanism.
    assert len(lines) - first <= 28
    assert max(map(len, lines)) <= 100


def test_columns_of_named_policies_yield_to_numbers_that_are_wide():
    """Euros, of which a patient costs up to 40,000: a column for each policy would be wider than a screen."""
    rng = np.random.default_rng(5)
    outcomes = {**DEATHS, "euros": 40_000 * rng.random((12, 3))}
    problem = problem_of(Sensitive(SPACE.shape, (2,)), -outcomes["euros"], records=SPACE, outcomes=outcomes)
    policies = ["optimal", "exponential-fitted", "permute-and-flip", "randomized-response"]
    tables = answer(problem, policies, by=["age"], named=True)
    text = screen(tables, "decision")
    assert max(map(len, text.splitlines())) <= 100
    head = text[text.index("At ε = ") : text.index("Per 100,000")]
    noted = " ".join(text.split()).partition("No room here, but in --full: ")[2]
    full = screen(tables, "decision", full=True).partition("Every mechanism")[2]
    # The fitted exponential mechanism has a column in any case.
    assert "exponential,\n" in head or "exponential, " in head
    for name in policies[2:]:
        assert (name in head) != (name in noted)
    for name in policies[1:]:
        assert name in full
    # The numbers in the titles of rows stand whole.
    assert f"(before {slots(tables, 'decision')['cell']('facts', 'before')})" in text


@pytest.mark.parametrize("case", CASES)
def test_an_answer_restated_at_its_own_epsilon_is_the_same(case):
    tables = tables_of_case(case)
    (epsilon,) = tables["columns"].query("stated")["epsilon"].unique()
    again = restated(tables, epsilon)
    assert verdict(again) == verdict(tables)
    for name, table in tables.items():
        pd.testing.assert_frame_equal(again[name], table)


def test_who_pays_and_what_hides_follow_epsilon():
    problem = problem_of(AnyRecord(), records=SPACE, outcomes=DEATHS, lead="deaths")
    tables = tables_of_case("features and groups")
    other = answer(problem, by=["age", "sex"], epsilon=2.0)
    pd.testing.assert_frame_equal(
        other["who"][["row", "epsilon", "value", "name"]], tables["who"][["row", "epsilon", "value", "name"]]
    )
    names = slots(restated(tables, 2.0), "decision")["who"], slots(other, "decision")["who"]
    assert names[0] == names[1]
    columns = [each["columns"] for each in (tables, other)]
    hides = [each[each["epsilon"] == 2].set_index("option")["hides"] for each in columns]
    common = hides[0].index.intersection(hides[1].index)
    assert (hides[0][common] == hides[1][common]).all()


SIX = ["Safest", "Gain", "Cost", "Who pays", "Observer", "Certain?"]


def test_a_private_choice_may_be_the_safest():
    tables = tables_of(ps.load_study("examples/ward/study.toml").with_choices(epsilons=[3.0]))
    deaths = tables["options"].query("row == 'death' and epsilon == 3").set_index("option")["value"]
    assert deaths["private choice"] == deaths[["one for all", "private choice", "exponential mechanism"]].min()
    assert safest_option(tables) == "private choice"


def line_of(tables, name):
    """A line of the answer, as it is printed."""
    return next(str(line.text) for line in slots(tables, "decision")["findings"] if line.name == name)


def with_deaths(deaths, policies=("optimal",), **kwargs):
    """A problem in which deaths have no part in the utilities, computed."""
    return computed(problem_of(AnyRecord(), outcomes={"deaths": deaths}, lead="deaths", **kwargs), policies)


def test_none_is_the_safest_against_its_verdict_on_deaths():
    """As stated the private choice has the fewest deaths; in no redraw has it."""
    found = with_deaths(-UTILITIES / 100 + 0.05)
    stated = answer_tables(found)
    assert safest_option(stated) == "private choice"
    singles = [f"for all: a{place}" for place in range(3)]
    options = dict.fromkeys([*found.tables["comparison"]["policy"], *singles])
    rows = [(draw, option, 5.0, 0.02 - 0.01 * (option == "best-fixed")) for draw in range(20) for option in options]
    drawn = pd.DataFrame(rows, columns=["draw", "option", "value", "expected_deaths"])
    tables = answer_tables(replace(found, redraws=Redrawn(drawn, {"stated": 1})))
    assert safest_option(tables) == "one for all"
    said = line_of(tables, "Safest")
    assert " for all: " in said and "not as stated" in said


def test_as_many_deaths_are_called_as_many():
    said = line_of(answer_tables(with_deaths(np.full((12, 3), 0.01))), "Safest")
    assert "as many deaths as with all else that hides" in said
    assert "fewest" not in said


def test_no_capital_makes_a_treatment_another_one():
    """The treatments "a" and "A", of which "a" has the fewest deaths."""
    deaths = np.tile([0.01, 0.02], (12, 1))
    problem = problem_of(
        AnyRecord(), np.tile([1.0, 0.0], (12, 1)), actions=["a", "A"], outcomes={"deaths": deaths}, lead="deaths"
    )
    assert line_of(answer(problem), "Safest").startswith("a for all: ")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The small study's tables, without redraws."""
    study = ps.load_study(write_small_study(tmp_path_factory.mktemp("small")))
    found = results_of(study, ps.build_problem(study))
    return study, answer_tables(replace(found, redraws=None), study=study)


def test_a_study_without_redraws_says_so(small):
    tables = small[1]
    assert "nothing was redrawn" in screen(tables, "decision")
    assert "better" not in set(tables["rows"]["row"])
    assert not {"best-for-all", "redrawn"} & set(tables)


def random_redraws(found, rng, draws=20):
    """Redraws in which any option may be better, equal or worse, in any share of the draws."""
    singles = [f"for all: {action}" for action in found.problem.actions]
    options = dict.fromkeys([*found.tables["comparison"]["policy"], *singles])
    chance = {option: rng.choice([0.0, 0.05, 0.1, 0.5, 0.9, 1.0]) for option in options}
    rows = []
    for draw in range(draws):
        for option in options:
            step = 0.0 if option == "best-fixed" else rng.choice([1.0, -1.0, 0.0], p=_chances(chance[option]))
            deaths = 0.01 - step * rng.choice([-0.001, 0.001])
            rows.append((draw, option, 5.0 + step * rng.random(), deaths))
    drawn = pd.DataFrame(rows, columns=["draw", "option", "value", "expected_deaths"])
    return drawn if found.problem.outcomes else drawn.drop(columns="expected_deaths")


def _chances(better):
    return [better, (1 - better) / 2, (1 - better) / 2]


RANDOM = {
    "deaths": lambda: problem_of(AnyRecord(), outcomes=DEATHS, lead="deaths"),
    "no deaths, ties": lambda: problem_of(Sensitive(SPACE.shape, (2,)), np.round(UTILITIES)),
    "one-feature": lambda: problem_of(OneFeature(SPACE.shape), outcomes=DEATHS, lead="deaths"),
}


@pytest.mark.parametrize("kind", RANDOM)
def test_no_option_is_recommended_against_its_verdict(kind):
    """Many redraws of one problem: to compute its results takes longest."""
    problem, rng = RANDOM[kind](), np.random.default_rng(8)
    found = computed(problem, ["exponential"] if kind == "one-feature" else ["exponential", "optimal"])
    for _ in range(4):
        drawn = random_redraws(found, rng)
        changed = answer_tables(replace(found, redraws=Redrawn(drawn, {"stated": 1})))
        private = changed["columns"].query("stated").set_index("option")["policy"]["private choice"]
        holds = verdict(changed)
        wide = drawn.pivot(index="draw", columns="option", values="value")
        better = (wide.sub(wide["best-fixed"], axis=0) > 1e-9).mean()
        # The table of certainty, the verdict, and the title on page and manifest say the same.
        said = verdict_on(changed, private)
        assert (said == "better") == (better[private] >= 0.9 - 1e-12)
        assert recommended(holds) == ("private choice" if said == "better" else "one for all")
        assert ("chosen privately loses less" in slots(changed, "decision")["finding"]) == (said == "better")
        # Not better: no gain is said. Benefit is said only where each's best is better.
        if better[private] <= 0.1:
            assert not holds["gain"]
        assert holds["each's best better"] == (better["greedy"] >= 0.9 - 1e-12)
        if holds["safest"]:
            check_safest(changed, drawn, private)
        # One wording of each line, whatever was drawn.
        names = ("safest", "gain", "cost", "who", "observer", "redrawn")
        assert all(holds[name] != holds[f"no {name}"] for name in names)


def verdict_on(tables, policy):
    found = tables["certainty"].set_index(["measure", "policy"])["verdict"]
    return found["value", policy]


def check_safest(tables, drawn, private):
    """Where an option is called the safest, that is true in the redraws."""
    deaths = drawn.pivot(index="draw", columns="option", values="expected_deaths")
    fewer = (deaths.sub(deaths["best-fixed"], axis=0) < -1e-12).mean()
    named = tables["names"].set_index("key")["text"]["safest option"]
    if named == "one for all":
        rivals = [option for option in fewer.index if option.startswith("for all: ")]
        assert (fewer[[*rivals, private]] <= 0.1 + 1e-12).all()
    else:
        policy = tables["columns"].query("stated").set_index("option")["policy"][named]
        assert fewer[policy] >= 0.9 - 1e-12


@cache
def of_three():
    return computed(problem_of(AnyRecord()))


@pytest.mark.parametrize(
    ("gains", "said"), [((1, 1), "better"), ((-1, -1), "not better"), ((1, -1), "cannot be told"), ((0, 0), "equal")]
)
def test_a_planted_study_of_each_verdict_has_its_words(gains, said):
    changed = planted(gains)
    private = changed["columns"].query("stated").set_index("option")["policy"]["private choice"]
    assert verdict_on(changed, private) == said
    holds = verdict(changed)
    assert recommended(holds) == ("private choice" if said == "better" else "one for all")
    assert holds["private choice better"] == (said == "better")
    if said == "not better":
        assert holds["no gain"]


def planted(gains):
    """Half of the redraws are of one kind, half of the other."""
    found = of_three()
    options = dict.fromkeys([*found.tables["comparison"]["policy"], "for all: a0", "for all: a1", "for all: a2"])
    rows = [
        (draw, option, 5.0 + gains[draw % 2] * (option not in {"best-fixed", "greedy"}))
        for draw in range(20)
        for option in options
    ]
    drawn = pd.DataFrame(rows, columns=["draw", "option", "value"])
    return answer_tables(replace(found, redraws=Redrawn(drawn, {"stated": 1})))


@pytest.mark.parametrize(("gains", "stays"), [((-1, -1), True), ((1, 1), False)])
def test_a_gain_that_redraws_deny_does_not_appear_at_an_epsilon_where_none_were_made(gains, stays):
    tables = planted(gains)
    part = page_part(slots(tables, "decision"), "decision")
    places = [text for _, text in MOVING.findall(part)]
    gain = next(
        place for place, text in enumerate(places) if text == slots(tables, "decision")["findings"][1].text.html
    )
    assert (gain not in dict(moving(tables, "decision", Cells(tables))["slots"])) == stays
    assert ('<dt>Gain <small class="stays">at ε = ' in part) == stays


def test_under_one_feature_the_belief_is_said_to_be_beyond_epsilon():
    said = " ".join(screen(tables_of_case("one-feature"), "decision").split())
    assert "of somebody who knows only the prior, which ε does not bound, from" in said
    assert "does not bound" not in screen(tables_of_case("features and groups"), "decision")
