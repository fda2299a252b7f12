"""Ways to run commands."""

import json

import pytest

from policysim.cli.main import main


@pytest.fixture
def run(capsys):
    """Run a command: exit code, stdout, stderr."""

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def screen(run):
    """What a command prints that has an answer, in one line."""

    def screen(*arguments):
        code, out, err = run(*arguments)
        assert code == 0, err
        return " ".join(out.split())

    return screen


@pytest.fixture
def document(run):
    """The JSON document of a command that has an answer."""

    def document(*arguments):
        code, out, err = run(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    return document


@pytest.fixture
def evaluated(document):
    """The JSON document of `policysim evaluate`."""
    return lambda *arguments: document("evaluate", *arguments)
