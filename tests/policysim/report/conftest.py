"""One small report, made once through the command line; its drawings are blank."""

import shutil

import pytest
from drawings import draw_only
from small_studies import STUDY, write_small_study

from policysim.cli.main import main


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
