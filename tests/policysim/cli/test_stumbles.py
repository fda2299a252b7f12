"""What newcomers stumble over: other ways to write the same, and hints for what they meant."""

from pathlib import Path

import pytest
from small_studies import write_small_study

from envs.toml_reader import SIZES
from policysim.cli.main import ADD, main
from policysim.cli.options import parse


@pytest.fixture
def study(tmp_path):
    return str(write_small_study(tmp_path))


@pytest.fixture
def run(capsys):
    def command(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "STUDY", "--epsilon", "1,,2"], "--epsilon must be numbers >= 0 separated by commas, got '1,,2'"),
        (
            ["compare", "STUDY", "--epsilon", "0,5"],
            "--epsilon must have decimal points, got '0,5': type 0.5 for one number, or 0.0,5 for two",
        ),
        (
            ["audit", "STUDY", "--epsilon", "1,05"],
            "--epsilon must have decimal points, got '1,05': type 1.05 ",
        ),
        (["compare", "STUDY", "--horizon", "2", "--total-epsilon", "0,5"], "--total-epsilon must have decimal points"),
        (
            ["compare", "STUDY", "--epsilon", "1e400"],
            "--epsilon cannot be read: 1e400 is too large for a number; inf is",
        ),
        (
            ["simulate", "STUDY", "--epsilon", "1e-400"],
            "--epsilon cannot be read: 1e-400 is too small for a number; type 0",
        ),
        (["compare", "STUDY", "--epsilon", "1,1e308"], f"--epsilon must be {SIZES}, got '1e308'"),
        (["audit", "STUDY", "--epsilon", "5e-324"], f"--epsilon must be {SIZES}, got '5e-324'"),
        (["select", "STUDY", "--epsilon", "1e308"], f"--epsilon must be {SIZES}, got '1e308'"),
        (["compare", "STUDY", "--policy", "uniform,,greedy"], "--policy must be names separated by commas, got"),
        (["compare", "STUDY", "--by", "age,age"], "--by names 'age' twice"),
        (["choose", "STUDY", "--keep", "80"], "--keep must be at most 1 or 100%, got '80'; did you mean 80%?"),
        (["choose", "STUDY", "--keep", "101"], "--keep must be at most 1 or 100%, got '101'\n"),
        (["choose", "STUDY", "--keep", "120%"], "--keep must be at most 1 or 100%, got '120%'\n"),
        (["simulate", "STUDY", "--patients", "1e13"], "--patients must be a whole number from 2 to 1,000,000,000, got"),
        (
            ["simulate", "STUDY", "--patients", "1.5e1"],
            "--patients must be a whole number from 2 to 1,000,000,000, got",
        ),
    ],
)
def test_what_is_meant_by_an_option_is_said_in_one_line(run, study, arguments, message):
    code, out, err = run(*[study if argument == "STUDY" else argument for argument in arguments])
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"policysim: {message}" in err


def test_a_scenario_is_told_from_a_study_and_how_to_name_it(run, tmp_path):
    write_small_study(tmp_path)
    code, out, err = run("compare", tmp_path / "scenario.toml")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "scenario.toml: is a scenario, and no study: " in err
    assert 'Put scenario = "scenario.toml" into a study.toml beside it' in err
    # What it advises works.
    (tmp_path / "study.toml").write_text('scenario = "scenario.toml"\n')
    assert run("sensitivity", tmp_path / "study.toml")[0] == 0


@pytest.mark.parametrize(
    ("number", "message"),
    [
        ("1e400", "1e400 is too large for a number; inf is infinity"),
        ("1e-400", "1e-400 is too small for a number; type 0 for zero"),
        ("1e308", f"privacy.epsilons[1]: must be {SIZES}, got 1e+308"),
        ("5e-324", f"privacy.epsilons[1]: must be {SIZES}, got 5e-324"),
    ],
)
def test_digits_beyond_any_float_are_no_infinity_and_no_zero_in_a_file(run, tmp_path, number, message):
    path = write_small_study(tmp_path)
    path.write_text(f'scenario = "scenario.toml"\n[privacy]\nepsilons = [1, {number}]\n', encoding="utf-8")
    code, out, err = run("sensitivity", path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


@pytest.mark.parametrize("epsilon", ["1e-50", "1e50"])
def test_the_largest_and_the_smallest_epsilon_are_answered_without_a_warning(
    run, study, epsilon, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    commands = (
        ("compare", study, "--policy", "exponential-fitted,optimal", "--epsilon", epsilon),
        ("audit", study, "--policy", "exponential-fitted", "--policy", "randomized-response", "--epsilon", epsilon),
    )
    for command in commands:
        code, out, err = run(*command)
        assert (code, err) == (0, "")
        assert max(map(len, out.splitlines())) < 200


def test_a_list_by_commas_is_the_same_as_repeating():
    lists = (
        ["--policy", "uniform,exponential", "--by", "age,infected"],
        ["--policy", "uniform", "--policy", "exponential", "--by", "age", "--by", "infected"],
    )
    short, long = (vars(parse(["compare", "covid", *options], ADD)) for options in lists)
    assert {name for name in short if short[name] != long[name]} == {"typed"}
    assert short["policy"] == ["uniform", "exponential"]


def test_a_simulated_log_knows_its_study(run, study, tmp_path):
    log = tmp_path / "logs" / "log.csv"
    assert run("simulate", study, "--patients", "2e3", "--log", log)[0] == 0
    code, out, err = run("evaluate", log, "--policy", "exponential", "--epsilon", "1")
    assert (code, err) == (0, "")
    assert "on the records of small" in out
    with Path(study).open("a", encoding="utf-8") as stream:
        stream.write("# another one\n")
    code, _, err = run("evaluate", log, "--policy", "exponential", "--epsilon", "1")
    assert (code, err.count("\n")) == (2, 1)
    assert f"{study}: has changed since {log} was simulated from it" in err
    assert run("evaluate", log, "--policy", "exponential", "--epsilon", "1", "--study", study)[0] == 0
    (tmp_path / "logs" / "log.csv.study.json").write_text("[]")
    code, _, err = run("evaluate", log, "--policy", "exponential", "--epsilon", "1")
    assert (code, err.count("\n")) == (2, 1)
    assert "log.csv.study.json: must name the study that log.csv was simulated from" in err
