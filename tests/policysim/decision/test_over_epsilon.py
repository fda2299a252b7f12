"""What the page says of the optimum over epsilon: where its deaths rise, in studies in which they do and do not."""

import math
import re

import pytest
from decisions import findings_of
from policysim.decision.over_epsilon import flat_sentence, rise_sentence
from report_pages import readable
from small_studies import SCENARIO, STUDY, write_small_study

import policysim as ps
from policysim.question import formats

OPTIMUM = STUDY.replace('"exponential", "randomized-response"', '"optimal"')
HARMFUL = SCENARIO.replace("side_effects = { cough = 0.1 }", "side_effects = { cough = 0.5 }")
SAID = re.compile(
    r"from ε = (\S+) to ε = (\S+) the extra deaths of optimal rise from (\S+) to (\S+) per 100,000, and (\w+) goes "
    r"from (\d+) % to (\d+) % of patients"
)


def made(folder, scenario, epsilons):
    """What is said of the rise, what is said of where the optimum begins, and the optimum's rows over epsilon."""
    text = re.sub(r"epsilons = .*", f"epsilons = {epsilons}", OPTIMUM)
    study = ps.load_study(write_small_study(folder, text, scenario))
    problem = ps.build_problem(study)
    table = ps.compare(problem, policies=study.policies, epsilons=study.epsilons)
    findings = findings_of(study, problem)
    said = readable(rise_sentence(table, findings, problem.actions)).replace("\u00a0", " ")
    rows = table[(table["policy"] == "optimal") & (table["group"] == "all")].set_index("epsilon")
    return said, readable(flat_sentence(table, findings)), rows


def test_where_deaths_rise_with_epsilon_the_page_says_from_where_to_where_and_which_treatment_is_given_more(tmp_path):
    epsilons = [0.5, 1.0, 1.4, 2.0, 2.8, 4.0]
    said, _, rows = made(tmp_path, SCENARIO, epsilons)
    low, high, before, after, gained, share, more = SAID.search(said).groups()
    # Of all steps from an epsilon to the next, one rises: nowhere is there more to say.
    steps = rows["extra_deaths"].diff()
    assert [f"{epsilon:g}" for epsilon in steps.index[steps > 1e-9]] == [high]
    assert epsilons.index(float(high)) == epsilons.index(float(low)) + 1
    ends = rows.loc[[float(low), float(high)]]
    assert [formats.events(deaths, 100_000, sign=True) for deaths in ends["extra_deaths"]] == [before, after]
    gains = {name: ends[f"p_{name}"].iloc[1] - ends[f"p_{name}"].iloc[0] for name in ("none", "syrup", "pill")}
    assert max(gains, key=gains.get) == gained
    assert [round(100 * value) for value in ends[f"p_{gained}"]] == [int(share), int(more)]


def test_where_deaths_only_fall_nothing_is_said_of_a_rise(tmp_path):
    said, _, rows = made(tmp_path, SCENARIO, [0.5, 1.0, 4.0])
    assert (rows["extra_deaths"].diff().dropna() <= 1e-12).all()
    assert said == ""


def test_the_rise_with_which_the_optimum_begins_is_said_once(tmp_path):
    said, begins, rows = made(tmp_path, HARMFUL, [0.5, 1.0, 1.4, 2.0, 4.0])
    assert rows["extra_deaths"].diff().max() * 100_000 > 1
    assert math.isclose(rows["extra_deaths"].diff().idxmax(), 1.4)
    assert "at the price of up to" in begins
    assert said == ""


@pytest.mark.parametrize("epsilons", [[1.0], [1.0, math.inf]])
def test_one_epsilon_and_an_infinite_one_can_be_all_there_is(tmp_path, epsilons):
    said, _, rows = made(tmp_path, SCENARIO, str(epsilons))
    assert len(rows) == len(epsilons)
    assert said == ""
