"""The answer to one decision: screens of every kind of problem, and no option recommended against its verdict."""

import math
import re
from collections import Counter
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import adjacencies
from small_studies import write_small_study

import policysim as ps
from envs import record_space
from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive
from policysim.decision.decision_answer import answer_tables
from policysim.decision.results import Asked, results
from policysim.output.screen import page_part, screen, slots
from policysim.study.certainty import certainty, recommended, restated, verdict
from policysim.study.labels import Labels, labels_of

SPACE = record_space({"age": ["young", "middle", "old"], "sex": [0, 1], "ill": [0, 1]})
RNG = np.random.default_rng(3)
UTILITIES, PRIOR = RNG.normal(size=(12, 3)), RNG.dirichlet(np.ones(12))
DEATHS = {"deaths": RNG.random((12, 3)) / 100}
MASK = np.ones((12, 3), dtype=bool)
MASK[:4, 2] = False
CONSTANT = np.tile([2.0, 1.0, 0.0], (12, 1))
THREE = ("exponential", "randomized-response", "optimal")


def problem_of(adjacency, utilities=UTILITIES, **kwargs):
    return DecisionProblem(utilities, PRIOR, adjacency, **kwargs)


def compared(study, problem):
    return results(problem, labels_of(study, problem), Asked.of(study), study=study)


def answer(problem, policies=THREE, by=(), *, epsilon=1.0, **kwargs):
    asked = Asked(tuple(ps.make_policy(name) for name in policies), epsilon, (0.5, 1.0, 2.0), tuple(by))
    return answer_tables(results(problem, Labels.of(problem), asked), **kwargs)


CASES = {
    "bare": lambda: answer(problem_of(AnyRecord())),
    "outcomes without deaths": lambda: answer(problem_of(AnyRecord(), outcomes={"falls": DEATHS["deaths"]})),
    "features and groups": lambda: answer(problem_of(AnyRecord(), records=SPACE, outcomes=DEATHS), by=["age", "sex"]),
    "one-feature": lambda: answer(problem_of(OneFeature(SPACE.shape), records=SPACE, outcomes=DEATHS), by=["age"]),
    "sensitive": lambda: answer(problem_of(Sensitive(SPACE.shape, (2,)), records=SPACE, outcomes=DEATHS), by=["age"]),
    "masks": lambda: answer(
        problem_of(Sensitive(SPACE.shape, (1, 2)), records=SPACE, outcomes=DEATHS, admissible=MASK), by=["age"]
    ),
    "only one policy": lambda: answer(problem_of(AnyRecord()), ["exponential"]),
    "only one for all": lambda: answer(problem_of(AnyRecord()), ["best-fixed"]),
    "policies by name": lambda: answer(
        problem_of(AnyRecord(), outcomes=DEATHS), ["permute-and-flip", "optimal-safe", "optimal"], named=True
    ),
    "nothing to gain": lambda: answer(problem_of(AnyRecord(), CONSTANT, records=SPACE)),
    "at zero": lambda: answer(problem_of(AnyRecord()), epsilon=0.0),
    "at infinity": lambda: answer(problem_of(AnyRecord()), epsilon=math.inf),
}


@pytest.mark.parametrize("case", CASES)
def test_a_screen_of_every_kind_of_problem(case):
    text = screen(CASES[case]())
    lines = text.splitlines()
    assert len(lines) <= 26
    assert max(map(len, lines)) <= 100
    names = [line.split("  ")[0].strip() for line in lines]
    assert [name for name in names if name in SIX] == SIX
    assert "nan" not in text


@pytest.mark.parametrize("case", CASES)
def test_an_answer_restated_at_its_own_epsilon_is_the_same(case):
    tables = CASES[case]()
    (epsilon,) = tables["columns"].query("stated")["epsilon"].unique()
    again = restated(tables, epsilon)
    assert verdict(again) == verdict(tables)
    for name, table in tables.items():
        pd.testing.assert_frame_equal(again[name], table)


def test_who_pays_and_what_hides_follow_epsilon():
    problem = problem_of(AnyRecord(), records=SPACE, outcomes=DEATHS)
    tables = answer(problem, by=["age", "sex"])
    for epsilon in (0.5, 1.0, 2.0):
        other = answer(problem, by=["age", "sex"], epsilon=epsilon)
        pd.testing.assert_frame_equal(
            other["who"][["row", "epsilon", "value", "name"]], tables["who"][["row", "epsilon", "value", "name"]]
        )
        names = slots(restated(tables, epsilon), "decision")["who"], slots(other, "decision")["who"]
        assert names[0] == names[1]
        columns = [each["columns"] for each in (tables, other)]
        hides = [each[each["epsilon"] == epsilon].set_index("option")["hides"] for each in columns]
        common = hides[0].index.intersection(hides[1].index)
        assert (hides[0][common] == hides[1][common]).all()


SIX = ["Safest", "Gain", "Cost", "Who pays", "Observer", "Certain?"]


@pytest.fixture(scope="module")
def studied():
    """Tables of built-in studies, and of an example."""
    found = {}
    for name in ("stroke", "examples/ward/study.toml"):
        study = ps.load_study(name)
        problem = ps.build_problem(study)
        found[name] = answer_tables(compared(study, problem), study=study)
    return found


def test_stroke_cannot_be_told_and_nothing_private_is_recommended(studied):
    tables = studied["stroke"]
    holds = verdict(tables)
    assert not holds["private choice better"]
    assert not holds["each's best better"]
    assert recommended(holds) == "one for all"
    assert set(tables["best-for-all"]["value"]) == {66.0, 65.0, 56.0, 13.0}
    text = screen(tables)
    assert len(text.splitlines()) <= 26
    assert "Cannot be told: private loses less utility than both for all in 106 of 200 redraws" in text
    assert "Benefit kept" not in text


def test_the_ward_is_told_where_it_is(studied):
    tables = studied["examples/ward/study.toml"]
    text = screen(tables)
    assert "Antibiotic for all: fewest deaths of what hides" in text
    assert "Benefit kept" in text
    assert verdict(tables)["each's best better"]


def test_a_private_choice_may_be_the_safest():
    study = ps.load_study("examples/ward/study.toml").with_choices(epsilons=[3.0])
    problem = ps.build_problem(study)
    tables = answer_tables(compared(study, problem), study=study)
    deaths = tables["options"].query("row == 'deaths' and epsilon == 3").set_index("option")["value"]
    assert deaths["private choice"] == deaths[["one for all", "private choice", "exponential mechanism"]].min()
    assert "Best private choice*: fewest deaths of what hides" in screen(tables)


def test_every_number_on_the_page_has_its_cell_and_is_that_of_the_screen(studied):
    for tables in studied.values():
        page = page_part(slots(tables, "decision"))
        names = " ".join(tables["names"]["text"])
        bare = unescape(re.sub(r"<[^>]*>", " ", re.sub(r"<data.*?</data>", "", page)))
        assert all(digits in names for digits in re.findall(r"\d+", bare))
        cells = re.findall(r'data-cell="([^"]+)" value="[^"]*">([^<]*)</data>', page)
        assert len(dict(cells)) > 40
        assert len(set(cells)) == len(dict(cells))
        printed = Counter(re.findall(r"[\d.,]*\d", screen(tables)))
        for key, text in dict(cells).items():
            assert all(printed[digits] for digits in re.findall(r"[\d.,]*\d", text)), key
        found = slots(tables, "decision")["findings"]
        assert [unescape(re.sub(r"<[^>]*>", "", line.text.html)) for line in found] == [line.text for line in found]


def test_a_study_without_redraws_says_so(tmp_path):
    study = ps.load_study(write_small_study(tmp_path))
    problem = ps.build_problem(study)
    tables = answer_tables(replace(compared(study, problem), redraws=None), study=study)
    text = screen(tables)
    assert "nothing was redrawn" in text
    assert "better" not in set(tables["rows"]["row"])
    assert "best-for-all" not in tables


def test_outcomes_of_a_scenario_are_its_own_and_not_their_sum(tmp_path):
    study = ps.load_study(write_small_study(tmp_path))
    problem = ps.build_problem(study)
    tables = answer_tables(replace(compared(study, problem), redraws=None), study=study)
    assert "expected_symptoms" not in tables["comparison"]
    everyone = tables["comparison"].query("group == 'all'")
    # Utility is what the outcomes cost.
    rows = everyone[everyone["policy"].isin(["best-fixed", "greedy", "optimal"])]
    weights = {"infected": 0.1, "fever": 0.2, "cough": 0.3, "deaths": 10.0, "costs": 1.0}
    weights |= {name: study.utility.weights[name] for name in ("infected", "fever", "cough")}
    weights["deaths"] = study.utility.weights["death"]
    cost = sum(weight * rows[f"expected_{name}"] for name, weight in weights.items())
    assert cost.to_numpy() == pytest.approx(-rows["value"].to_numpy(), rel=1e-9)


@st.composite
def studies(draw):
    """A small random problem, and random redraws of what its options are worth."""
    adjacency, n_records = draw(adjacencies())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_actions = draw(st.integers(2, 3))
    utilities = rng.normal(size=(n_records, n_actions))
    if draw(st.booleans()):
        utilities = np.round(utilities)
    outcomes = {"deaths": rng.random((n_records, n_actions)) / 50} if draw(st.booleans()) else {}
    return DecisionProblem(utilities, rng.dirichlet(np.ones(n_records)), adjacency, outcomes=outcomes), rng


def random_redraws(problem, columns, rng, draws=20):
    """Redraws in which any option may be better, equal or worse, in any share of the draws."""
    options = dict.fromkeys([*columns["policy"], *(f"for all: {action}" for action in problem.actions)])
    chance = {option: rng.choice([0.0, 0.05, 0.1, 0.5, 0.9, 1.0]) for option in options}
    rows = []
    for draw in range(draws):
        for option in options:
            step = 0.0 if option == "best-fixed" else rng.choice([1.0, -1.0, 0.0], p=_chances(chance[option]))
            deaths = 0.01 - step * rng.choice([-0.001, 0.001])
            rows.append((draw, option, 5.0 + step * rng.random(), deaths))
    return pd.DataFrame(rows, columns=["draw", "option", "value", "expected_deaths"])


def _chances(better):
    return [better, (1 - better) / 2, (1 - better) / 2]


@given(studies())
@settings(max_examples=40, deadline=None)
def test_no_option_is_recommended_against_its_verdict(case):
    problem, rng = case
    tables = answer(
        problem, ["exponential", "optimal"] if not isinstance(problem.adjacency, OneFeature) else ["exponential"]
    )
    drawn = random_redraws(problem, tables["columns"], rng)
    if not problem.outcomes:
        drawn = drawn.drop(columns="expected_deaths")
    changed = {**tables, "certainty": certainty(drawn, "best-fixed")}
    holds = verdict(changed)
    policy = tables["columns"].query("stated").set_index("option")["policy"]
    wide = drawn.pivot(index="draw", columns="option", values="value")
    better = (wide.sub(wide["best-fixed"], axis=0) > 1e-9).mean()
    assert (recommended(holds) == "private choice") == (better[policy["private choice"]] >= 0.9 - 1e-12)
    assert recommended(holds) in {"private choice", "one for all"}
    # Not better: no gain is said. Benefit is said only where each's best is better.
    if better[policy["private choice"]] <= 0.1:
        assert not holds["gain"]
    assert holds["each's best better"] == (better["greedy"] >= 0.9 - 1e-12)
    if holds["safest"]:
        deaths = drawn.pivot(index="draw", columns="option", values="expected_deaths")
        fewer = (deaths.sub(deaths["best-fixed"], axis=0) < -1e-12).mean()
        named = tables["names"].set_index("key")["text"]["safest option"]
        if named == "one for all":
            rivals = [option for option in fewer.index if option.startswith("for all: ")]
            assert (fewer[[*rivals, policy["private choice"]]] <= 0.1 + 1e-12).all()
        else:
            assert fewer[policy[named]] >= 0.9 - 1e-12
    # One wording of each line, whatever was drawn.
    assert all(holds[name] != holds[f"no {name}"] for name in ("safest", "gain", "cost", "who", "observer", "redrawn"))


def test_under_one_feature_the_belief_is_said_to_be_beyond_epsilon():
    asked = {"records": SPACE, "outcomes": DEATHS}
    said = " ".join(screen(answer(problem_of(OneFeature(SPACE.shape), **asked))).split())
    assert "of somebody who knows only the prior, which ε does not bound, from" in said
    assert "does not bound" not in screen(answer(problem_of(AnyRecord(), **asked)))
