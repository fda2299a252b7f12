"""One small report, made once through the command line; one of its drawings is drawn and the others are blank."""

import shutil

import pytest
from drawings import draw_only
from small_studies import STUDY, write_small_study

from policysim.cli.main import main

DRAWN = "loss-by-group"


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The folder of a study with its scenario and its report."""
    folder = tmp_path_factory.mktemp("studies") / "ward"
    # Few redraws and one epsilon: more would say nothing about running again.
    text = STUDY.replace("[0.5, 1.0, 4.0]", "[1.0]")
    write_small_study(folder, text).rename(folder / "study.toml")
    arguments = ["compare", str(folder / "study.toml"), "--by", "smoker", "--seed", "0", "--out", str(folder)]
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch, DRAWN)
        patch.setattr("policysim.decision.redraws.REDRAWS", 20)
        assert main(arguments) == 0
    return folder


@pytest.fixture
def drawn_as_made(draw_only):
    """Drawing as little when it is run again."""
    draw_only(DRAWN)


@pytest.fixture
def report(made, tmp_path):
    """A copy to spoil."""
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
