"""The numbers of the slider are those of the comparison and of the example patients."""

import io
import json
import math
import re

import pandas as pd
import pytest

from policysim.question.words import odds, policy_odds
from policysim.study.slider import choosable, first_policy, make_slider


@pytest.fixture(scope="module")
def numbers(full):
    return json.loads(re.search(r'<script type="application/json" id="numbers">(.*?)</script>', full.page)[1])


def listed(values, n):
    """A list over epsilon; what is the same everywhere is there once."""
    return values * n if len(values) == 1 else values


def test_positions_are_the_epsilons_with_the_odds_in_words(full, numbers):
    assert numbers["epsilons"] == list(full.study.epsilons)
    said = [
        numbers["odds"].format(epsilon=label, right=right)
        for label, right in zip(numbers["labels"], numbers["guesses"], strict=True)
    ]
    assert said == [odds(e, 1 / (1 + math.exp(-e))) for e in full.study.epsilons]


def test_the_odds_of_a_policy_are_those_of_its_own_guarantee(full, numbers):
    overall = full.table[full.table["group"] == "all"]
    said = {}
    for name, found in numbers["policies"].items():
        loss = overall[overall["policy"] == name].sort_values("epsilon")["guarantee"].tolist()
        right = listed(found.get("guesses", numbers["guesses"]), len(loss))
        # In tenths of 100, and never below.
        exact = [100 / (1 + math.exp(-most)) for most in loss]
        assert all(0 <= shown - true + 1e-9 <= 0.1 for shown, true in zip(right, exact, strict=True))
        said[name] = found.get("odds")
    # Those that take no ε keep none: nobody is promised that greedy hides anything.
    assert said["exponential"] is None
    assert said["greedy"] == [policy_odds("greedy", 1.0, math.inf, uses_epsilon=False)]
    assert said["best-fixed"] == [policy_odds("best-fixed", 1.0, 0.0, uses_epsilon=False)]


def test_every_policy_has_its_row_of_the_comparison_at_every_epsilon(full, numbers):
    overall = full.table[full.table["group"] == "all"]
    assert set(numbers["policies"]) == set(overall["policy"])
    for name, found in numbers["policies"].items():
        rows = overall[overall["policy"] == name].sort_values("epsilon")
        for key, column in (("loss", "loss"), ("benefit_kept",) * 2):
            assert listed(found[key], len(rows)) == pytest.approx(rows[column].tolist(), rel=5.001e-6, abs=1e-12)
        assert listed(found["extra_deaths"], len(rows)) == pytest.approx(rows["extra_deaths"].tolist(), rel=5.001e-6)
        guessed = rows["guess_rate"].tolist()
        assert listed(found["guess_rate"], len(rows)) == pytest.approx(guessed, abs=1.001e-6)


def test_every_group_has_its_loss_at_every_epsilon_in_two_digits(full, numbers):
    grouped = full.table[full.table["group"] != "all"]
    for name, found in numbers["policies"].items():
        rows = grouped[grouped["policy"] == name].groupby(["group", "level"], sort=False)
        for (_, mine), losses in zip(rows, found["groups"], strict=True):
            exact = mine.sort_values("epsilon")["loss"].tolist()
            assert listed(losses, len(exact)) == pytest.approx(exact, rel=0.05, abs=1e-9)


def test_example_patients_have_their_probabilities(full, numbers):
    examples = pd.read_csv(io.BytesIO(full.files["examples.csv"]))
    patients = list(dict.fromkeys(examples["patient"]))
    for name, found in numbers["policies"].items():
        rows = examples[examples["policy"] == name]
        for patient, curves in zip(patients, found["p"], strict=True):
            for action, curve in zip(numbers["actions"], curves, strict=True):
                chosen = rows[(rows["patient"] == patient) & (rows["action"] == action)]
                expected = chosen.sort_values("epsilon")["probability"].tolist()
                # In whole per cent.
                assert listed(curve, len(expected)) == pytest.approx([100 * share for share in expected], abs=0.5001)


def test_the_page_says_all_of_it_at_the_studys_epsilon_without_a_script(full, numbers):
    page = full.page
    position = numbers["epsilons"].index(full.study.epsilon)
    first = numbers["policies"]["optimal"]
    for name in ("loss", "benefit_kept", "extra_deaths", "guess_rate"):
        (value,) = set(re.findall(rf'data-show="{name}" data-value="([^"]*)"', page))
        assert float(value) == pytest.approx(listed(first[name], len(numbers["epsilons"]))[position], rel=1e-5)
    assert re.search(r'<div class="control" id="control" hidden>', page)
    assert f'value="{position}"' in page
    assert "more private" in page
    assert "less private" in page


def small(action="<b></script>", value=math.nan):
    rows = [
        {"policy": "optimal", "epsilon": e, "group": "all", "loss": 0.25, "benefit_kept": value, "guarantee": e}
        for e in (0.5, math.inf)
    ]
    chosen = pd.DataFrame(
        [
            {"policy": "optimal", "epsilon": e, "patient": "who", "action": a, "probability": p}
            for e in (0.5, math.inf)
            for a, p in ((action, 1 / 3), ("other", 2 / 3))
        ]
    )
    return make_slider(pd.DataFrame(rows), chosen, {"who": "a record"}, epsilon=0.5, policy="optimal")


def test_what_a_comparison_lacks_is_not_shown_and_what_json_lacks_is_text():
    slider = small()
    assert set(slider.now) == {"loss"}
    found = json.loads(slider.numbers)
    assert found["epsilons"] == [0.5, "inf"]
    assert found["labels"] == ["0.5", "∞"]
    assert found["odds"].startswith("At ε = {epsilon}, ")
    assert found["policies"]["optimal"] == {"loss": [0.25], "p": [[[33], [67]]]}


def test_no_name_can_end_the_script():
    assert "<" not in small().numbers
    assert json.loads(small().numbers)["actions"][0] == "<b></script>"


def test_the_bounds_of_the_limit_cannot_be_chosen(bounded):
    assert "optimal-unbeatable" in set(bounded.table["policy"])
    assert choosable(bounded.table) == ("exponential", "greedy", "best-fixed", "uniform")
    assert first_policy(bounded.table, 1.0) == "exponential"


def test_the_first_policy_is_the_best_that_spends_epsilon():
    rows = [("greedy", 9.0), ("exponential", 1.0), ("randomized-response", 2.0)]
    table = pd.DataFrame([{"policy": p, "epsilon": 1.0, "group": "all", "value": v} for p, v in rows])
    assert first_policy(table, 1.0) == "randomized-response"
    assert first_policy(table[:1], 1.0) == "greedy"
    tied = [("randomized-features", 1 + 1e-15), ("optimal", 1.0)]
    table = pd.DataFrame([{"policy": p, "epsilon": 1.0, "group": "all", "value": v} for p, v in tied])
    assert first_policy(table, 1.0) == "optimal"
