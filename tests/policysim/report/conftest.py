"""One small report, made once through the command line, with blank drawings; and one with all that a page can hold."""

import shutil

import pytest
from drawings import draw_only
from report_pages import make_report
from small_studies import SCENARIO, STUDY, write_small_study

from policysim.cli.main import main
from policysim.study.sweep import EPSILONS


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The folder of a study with its scenario and its report."""
    folder = tmp_path_factory.mktemp("studies") / "ward"
    # Few versions of the model and one epsilon: more would prove nothing about running again.
    text = STUDY.replace("[0.5, 1.0, 4.0]", "[1.0]")
    write_small_study(folder, text).rename(folder / "study.toml")
    arguments = ["compare", str(folder / "study.toml"), "--by=smoker", "--see", "0", "--full", "--out", str(folder)]
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch)
        patch.setattr("policysim.decision.redraws.REDRAWS", 20)
        assert main(arguments) == 0
    return folder


@pytest.fixture
def report(made, tmp_path, monkeypatch):
    """A copy to spoil, which is made again with as few versions."""
    monkeypatch.setattr("policysim.decision.redraws.REDRAWS", 20)
    return shutil.copytree(made, tmp_path / "ward")


@pytest.fixture
def run(capsys):
    """Exit code, stdout and stderr of one command."""
    capsys.readouterr()

    def run_command(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_command


@pytest.fixture(scope="session")
def full(tmp_path_factory):
    """With covid's epsilons and policies, groups, prices, and a title that is markup."""
    policies = '["best-fixed", "exponential", "exponential-fitted", "randomized-response", "optimal"]'
    text = STUDY.replace("[0.5, 1.0, 4.0]", str(list(EPSILONS))).replace(
        '["greedy", "best-fixed", "uniform", "exponential", "randomized-response"]', policies
    )
    text = text.replace('["age", "infected"]', '["age", "infected", "smoker", "fever"]')
    scenario = SCENARIO.replace('title = "syrup"', "title = 'is 1 < 2 & \"safe\"?'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("policysim.decision.redraws.REDRAWS", 20)
        return make_report(tmp_path_factory.mktemp("full"), text, prices=True, formats=("svg",), scenario=scenario)
