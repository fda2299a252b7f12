"""Where to put the noise, against enumeration of all reports on a small study; and how commands name the script."""

import hashlib
import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from experiment_report import run
from randomise_or_decide import (
    FIGURE,
    LIMIT,
    NOTABLE,
    OTHERS,
    RECORD,
    RESPONSE,
    Experiment,
    Hidden,
    ask,
    crossings,
    curves,
    kept,
    overtaking,
    percent,
    two_digits,
)
from randomise_or_decide import findings as say
from small_studies import write_small_study

import policysim as ps
from policysim.cli.main import main
from policysim.output.deliver import folder_files
from policysim.question.protocol import SILENT, Progress


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


@pytest.fixture(scope="module")
def findings(constants, table):
    return say(constants, table, crossings(constants, table))


def files_of(constants):
    asked = ask(constants)
    return folder_files(asked.answer(SILENT), asked.command)


@pytest.fixture(scope="module")
def files(constants):
    return files_of(constants)


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
    """The best of the other policies: the response in closed form, the capped mechanism as `compare` has it."""
    capped = ps.compare(problem, policies=[OTHERS[0]], epsilons=[epsilon])["benefit_kept"].item()
    return max(capped, response_benefit(problem, epsilon))


def test_response_on_the_decision_keeps_as_much_as_two_coins_where_it_is_said_to(constants, problems, table):
    for one in crossings(constants, table):
        problem = problems[constants.hidden.index(one.hidden)]
        keep = kept(table, one.hidden.name, RECORD, one.coins)
        # found to 1e-4 relative, from above
        assert response_benefit(problem, one.same) >= keep - 1e-9
        assert response_benefit(problem, one.same / 1.001) < keep


def test_where_nothing_overtakes_it_is_said(table, problems):
    rows = table[(table["hidden"] == "infection") & (table["policy"].isin([RECORD, *OTHERS]))].copy()
    rows.loc[rows["policy"] == RECORD, "benefit_kept"] = 1.0
    assert overtaking(problems[0], rows) == (math.inf, "")


def test_the_numbers_of_the_page_are_those_of_the_table(constants, findings, files):
    csv = {}
    for line in files[f"figures/{FIGURE}.csv"].decode().splitlines()[1:]:
        hidden, policy, epsilon, benefit_kept, spent, _ = line.split(",")
        csv[hidden, policy, float(epsilon)] = float(benefit_kept), float(spent)
    page = files["report.html"].decode()
    _, at_one, coins = findings.sections
    for cells in at_one.rows:
        for policy, cell in zip(at_one.headings[1:-1], cells[1:-1], strict=True):
            assert cell == percent(csv[cells[0], policy, 1.0][0])
            assert f"<td>{cell}</td>" in page
    for hidden, cells in zip(constants.hidden, coins.rows, strict=True):
        value, spent = csv[hidden.name, RECORD, float(f"{constants.two_coins(hidden):.8g}")]
        assert tuple(cells[2:4]) == (percent(value), two_digits(spent))
        assert cells[4] == percent(csv[hidden.name, RESPONSE, float(f"{constants.two_coins(hidden):.8g}")][0])
    for name in ("infection", "infection and age", "everything"):
        assert f"{name} {percent(csv[name, RECORD, 1.0][0])} against" in findings.lead[1]


def test_a_star_marks_two_coins_in_every_panel(constants, findings):
    marked = findings.drawings[0].table.query("two_coins")
    assert list(marked["hidden"]) == [hidden.name for hidden in constants.hidden]
    assert set(marked["policy"]) == {RECORD}


def test_two_runs_leave_the_same_bytes(constants, files):
    assert files == files_of(constants)


def test_the_manifest_names_the_script_and_its_digest(files):
    manifest, script = json.loads(files["manifest.json"]), "examples/randomise_or_decide.py"
    assert manifest["command"] == f"python {script}"
    content = (Path(__file__).parents[2] / script).read_bytes()
    assert manifest["study"]["sha256"] == hashlib.sha256(content).hexdigest()


def test_progress_counts_curves_and_crossings_of_every_hidden_set(constants):
    seen, expected = [], []
    one = replace(constants, hidden=constants.hidden[:1])
    ask(one).find(Progress(seen.append, expected.append))
    assert sum(expected) == sum(seen) == 2


@pytest.mark.parametrize("arguments", [["--seed", "-1"], ["--out", "file"]])
def test_what_cannot_be_asked_or_written_ends_with_2_and_says_why(arguments, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.chdir(tmp_path)

    def never(seed):
        return replace(ask(Experiment(), seed), find=lambda _: pytest.fail("computed before it was refused"))

    try:
        code = run(never, arguments)
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert ("seed must be a whole number >= 0, got -1" if "--seed" in arguments else "cannot write to file") in err


def test_the_claim_of_no_loss_is_an_erratum(findings):
    (claim,) = findings.rows
    assert claim.figure == "two coins for each feature of a record: ε"
    assert claim.agreement == "erratum"
    # five features at ln 3
    assert "5 × 1.0986 = 5.49" in claim.shown


def test_the_experiment_hides_the_sets_that_it_names():
    experiment = Experiment()
    assert [len(hidden.features or experiment.features) for hidden in experiment.hidden] == [1, 9, 7, 8, 18]
    assert experiment.two_coins(experiment.hidden[-1]) == pytest.approx(18 * math.log(3))
    assert experiment.epsilon in experiment.epsilons


def test_the_committed_numbers_are_of_these_sets():
    folder = Path(__file__).parents[2] / "reports" / "randomise-or-decide"
    table = pd.read_csv(folder / "figures" / f"{FIGURE}.csv")
    experiment = Experiment()
    assert list(dict.fromkeys(table["hidden"])) == [hidden.name for hidden in experiment.hidden]
    assert {experiment.epsilon, *experiment.epsilons} <= set(table["epsilon"])


@pytest.mark.parametrize("name", ["learning-on-private-columns", "randomise-or-decide", "stroke-calibration"])
def test_compare_and_reproduce_name_the_script(name, capsys, tmp_path, monkeypatch):
    root = Path(__file__).parents[2]
    script = f"examples/{name.replace('-', '_')}.py"
    assert (root / script).is_file()
    manifest = root / "reports" / name / "manifest.json"
    monkeypatch.chdir(tmp_path)
    for arguments in (["compare", name], ["choose", name], ["reproduce", str(manifest)]):
        assert main(arguments) == 2
        out, err = capsys.readouterr()
        assert (out, len(err.splitlines())) == ("", 1)
        assert f"run python {script}" in err
    assert list(tmp_path.iterdir()) == []
