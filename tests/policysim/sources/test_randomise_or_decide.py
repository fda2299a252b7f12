"""Where to put the noise, against enumeration of all reports, on a small study."""

import itertools
import math

import numpy as np
import pytest
from policysim.sources.page import source_files
from policysim.sources.randomise_or_decide import COST, read
from policysim.sources.randomise_or_decide_curves import (
    LIMIT,
    NOTABLE,
    OTHERS,
    RECORD,
    RESPONSE,
    crossings,
    curves,
    kept,
    number_of_steps,
    overtaking,
    problems_of,
)
from policysim.sources.randomise_or_decide_drawings import NAME
from policysim.sources.randomise_or_decide_findings import analyse
from policysim.sources.studies import SourceStudy
from small_studies import write_small_study

from envs.toml_reader import InputFileError, open_toml
from policysim.comparison import compare
from policysim.study_file import FOLDER
from policysim.words import percent, rounded

TEXT = """\
study = "{study}"
epsilon = 1
epsilons = [0.5, 2, 4, 8]

[coins]
first = 0.5
second = 0.5

[[hidden]]
name = "infection"
features = ["infected"]

[[hidden]]
name = "infection and age"
features = ["infected", "age"]

[[hidden]]
name = "everything"

[[claim]]
about = "two coins for each feature of a record: ε"
says = "0"
where = "text"
"""


def constants_of(text, folder):
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    with open_toml(path) as table:
        constants = read(table)
        table.close()
    return constants


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return TEXT.format(study=write_small_study(tmp_path_factory.mktemp("small")).as_posix())


@pytest.fixture(scope="module")
def constants(text, tmp_path_factory):
    return constants_of(text, tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def problems(constants):
    return problems_of(constants)


@pytest.fixture(scope="module")
def table(constants, problems):
    return curves(constants, problems)


@pytest.fixture(scope="module")
def findings(constants):
    return analyse(constants)


def benefit(problem, value):
    best = float(problem.prior @ problem.utilities.max(axis=1))
    fixed = float((problem.prior @ problem.utilities).max())
    return (value - fixed) / (best - fixed)


def value_of_randomised_records(constants, hidden, problem, keep):
    """V by enumeration of every record and report; `keep` is the probability to report each hidden feature truly."""
    space = constants.study.scenario.space
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
    share = epsilon / hidden.size(constants.study)
    keep = [math.exp(share) / (math.exp(share) + size - 1) for size in constants.study.scenario.space.shape]
    value = value_of_randomised_records(constants, hidden, problems[place], keep)
    assert kept(table, hidden.name, RECORD, epsilon) == pytest.approx(benefit(problems[place], value), abs=1e-10)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_two_coins_tell_the_truth_of_each_flag_three_times_of_four(constants, problems, table, place):
    hidden = constants.hidden[place]
    # All features of the small study have two levels.
    value = value_of_randomised_records(constants, hidden, problems[place], [0.75] * 5)
    coins = constants.two_coins(hidden)
    assert coins == pytest.approx((1, 2, 5)[place] * math.log(3))
    assert kept(table, hidden.name, RECORD, coins) == pytest.approx(benefit(problems[place], value), abs=1e-10)


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
    found = crossings(constants, problems, table)
    crossed = [one for one in found if one.overtaking.policy]
    assert crossed, "the small study must have a crossing, or this test shows nothing"
    for one in crossed:
        problem = problems[constants.hidden.index(one.hidden)]
        # The root is known to 1 % of epsilon: on either side the sign must be right.
        leads = []
        for epsilon in (one.overtaking.epsilon / 1.02, one.overtaking.epsilon * 1.02):
            share = epsilon / one.hidden.size(constants.study)
            keep = [math.exp(share) / (math.exp(share) + 1)] * 5
            record = benefit(problem, value_of_randomised_records(constants, one.hidden, problem, keep))
            other = curves_at(problem, epsilon)
            leads.append(other - record - NOTABLE)
        assert leads[0] < 0 < leads[1]


def curves_at(problem, epsilon):
    """The best of the other policies: the response in closed form, the capped mechanism as `compare` has it."""
    capped = compare(problem, policies=[OTHERS[0]], epsilons=[epsilon])["benefit_kept"].item()
    return max(capped, response_benefit(problem, epsilon))


def test_response_on_the_decision_keeps_as_much_as_two_coins_where_it_is_said_to(constants, problems, table):
    for one in crossings(constants, problems, table):
        problem = problems[constants.hidden.index(one.hidden)]
        keep = kept(table, one.hidden.name, RECORD, one.coins)
        # found to 1e-4 relative, from above
        assert response_benefit(problem, one.same) >= keep - 1e-9
        assert response_benefit(problem, one.same / 1.001) < keep


def test_where_nothing_overtakes_it_is_said(table, problems):
    rows = table[(table["hidden"] == "infection") & (table["policy"].isin([RECORD, *OTHERS]))].copy()
    rows.loc[rows["policy"] == RECORD, "benefit_kept"] = 1.0
    assert overtaking(problems[0], rows).epsilon == math.inf


def test_progress_is_called_as_often_as_it_was_announced(constants, problems):
    calls = []
    table = curves(constants, problems, lambda: calls.append(1))
    crossings(constants, problems, table, lambda: calls.append(1))
    assert len(calls) == number_of_steps(constants)


def study_of(constants, text):
    return SourceStudy("small", text, "Title", "Source", "randomise-or-decide", 1, constants)


def test_the_numbers_of_the_page_are_those_of_the_table(constants, text, findings):
    files = source_files(study_of(constants, text), findings, 1)
    csv = {}
    for line in files[f"figures/{NAME}.csv"].decode().splitlines()[1:]:
        hidden, policy, epsilon, benefit_kept, spent, _ = line.split(",")
        csv[hidden, policy, float(epsilon)] = float(benefit_kept), float(spent)
    page = files["report.html"].decode()
    at_one, coins = findings.sections[1], findings.sections[2]
    for cells in at_one.cells:
        for policy, cell in zip(at_one.headings[1:-1], cells[1:-1], strict=True):
            assert cell == percent(csv[cells[0], policy, 1.0][0])
            assert f"<td>{cell}</td>" in page
    for hidden, cells in zip(constants.hidden, coins.cells, strict=True):
        value, spent = csv[hidden.name, RECORD, float(f"{constants.two_coins(hidden):.12g}")]
        assert cells[2:4] == (percent(value), rounded(spent))
        assert cells[4] == percent(csv[hidden.name, RESPONSE, float(f"{constants.two_coins(hidden):.12g}")][0])
    for name in ("infection", "infection and age", "everything"):
        assert f"{name} {percent(csv[name, RECORD, 1.0][0])} against" in findings.lead[0]


def test_a_star_marks_two_coins_in_every_panel(constants, findings):
    marked = findings.drawings[0].table.query("two_coins")
    assert list(marked["hidden"]) == [hidden.name for hidden in constants.hidden]
    assert set(marked["policy"]) == {RECORD}


def test_two_runs_leave_the_same_bytes(constants, text, findings):
    study = study_of(constants, text)
    assert source_files(study, findings, 1) == source_files(study, analyse(constants), 1)


def test_the_claim_of_no_loss_is_an_erratum(findings):
    (row,) = findings.rows
    assert row.what == COST
    assert row.verdict == "erratum"
    # five features at ln 3
    assert "5 × 1.0986 = 5.49" in row.ours


def test_the_built_in_study_hides_the_sets_that_it_names():
    with open_toml(FOLDER / "randomise-or-decide.toml") as table:
        for key in ("analysis", "title", "source", "seed"):
            assert key in table
            table.known.add(key)
        constants = read(table)
        table.close()
    assert [hidden.size(constants.study) for hidden in constants.hidden] == [1, 9, 7, 8, 18]
    assert constants.two_coins(constants.hidden[-1]) == pytest.approx(18 * math.log(3))
    assert constants.epsilon in constants.epsilons


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('features = ["infected"]', 'features = ["infectd"]', "11: hidden[0].features[0]: unknown name 'infectd'"),
        ("epsilon = 1", "epsilon = 0", "2: epsilon: must be a number in [0.001, 1000], got 0"),
        ("epsilons = [0.5, 2, 4, 8]", "epsilons = [-1]", "3: epsilons[0]: must be numbers in [0.001, 1000], got -1"),
        ('name = "everything"', "", "17: hidden[2]: name is missing"),
        ("first = 0.5", "first = 2", "6: coins.first: must be a number in [0.01, 0.99], got 2"),
    ],
)
def test_mistakes_in_the_file_are_named_with_their_line(text, tmp_path, old, new, message):
    assert old in text
    with pytest.raises(InputFileError) as error:
        constants_of(text.replace(old, new, 1), tmp_path)
    assert f"study.toml:{message}" in str(error.value)


def test_a_study_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputFileError, match=r"study\.toml:1: study: unknown study 'covd'; did you mean 'covid'"):
        constants_of(TEXT.format(study="covd"), tmp_path)


def test_a_study_that_hides_nothing_is_refused(text, tmp_path):
    without = text[: text.index("[[hidden]]")] + text[text.index("[[claim]]") :]
    with pytest.raises(InputFileError, match="hidden is missing"):
        constants_of(without, tmp_path)
