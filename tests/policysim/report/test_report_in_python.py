"""`policysim.report`: the same report as the command line makes, and the command line that makes it again."""

import importlib
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_studies import write_small_study

import policysim as ps
from policysim.cli import compare_command
from policysim.cli.kinds import arguments_again, arguments_of_python
from policysim.cli.options import parse

PROBLEM = ps.DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], ps.AnyRecord())
EPSILONS = st.none() | st.lists(st.sampled_from([0.0, math.inf]) | st.floats(1e-50, 1e50), min_size=1, max_size=3)


@given(
    policies=st.lists(st.sampled_from(["optimal", "greedy"]), unique=True),
    epsilons=EPSILONS,
    totals=EPSILONS,
    horizon=st.none() | st.integers(1, 366),
    delta=st.floats(0, 0.5),
)
def test_the_command_line_of_a_report_in_python_is_read_as_what_was_asked(policies, epsilons, totals, horizon, delta):
    words = arguments_of_python(
        "mine.toml", policies=policies, epsilons=epsilons, horizon=horizon, total_epsilons=totals, delta=delta
    )
    chosen = parse(words, [compare_command.add])
    assert arguments_again(chosen) == words
    asked = [chosen.policy, chosen.epsilon, chosen.total_epsilon, chosen.horizon, chosen.delta]
    assert asked == [policies or None, epsilons, totals, horizon, delta or None]


@pytest.mark.usefixtures("blank_drawings")
def test_a_study_by_its_path_has_the_report_of_compare(run, tmp_path):
    path = write_small_study(tmp_path)
    report = ps.report(path, epsilons=1, policies=["exponential"])
    assert report.arguments == ("compare", "study.toml", "--policy", "exponential", "--epsilon", "1.0")
    report.save(tmp_path / "python")
    code, out, _ = run("compare", path, *report.arguments[2:], "--out", tmp_path / "typed")
    assert code == 0 and out.startswith(str(report).rstrip())
    for name in report.tables:
        tables = [pd.read_csv(tmp_path / made / f"{name}.csv") for made in ("python", "typed")]
        pd.testing.assert_frame_equal(*tables)
    assert run("reproduce", tmp_path / "python" / "manifest.json")[0] == 0


def test_a_report_of_a_problem_has_no_command_and_reproduce_refuses_it_in_a_line(run, tmp_path):
    ps.report(PROBLEM, epsilons=[1.0]).save(tmp_path)
    assert json.loads((tmp_path / "manifest.json").read_text())["command"] == []
    code, _, err = run("reproduce", tmp_path / "manifest.json")
    assert (code, err.count("\n"), "its report was made in Python" in err) == (2, 1, True)


@pytest.mark.parametrize(
    ("of", "asked", "words"),
    [
        *((of, {}, "report takes a DecisionProblem, a study, its name or the path") for of in (None, np.ones(2), 7)),
        (PROBLEM, {"epsilons": -1.0}, r"epsilon must be a number >= 0, got -1\.0"),
        (PROBLEM, {"policies": ["magic"]}, "unknown policy 'magic'"),
        *((of, {"policies": []}, "policies must not be empty") for of in (PROBLEM, "covid")),
        (PROBLEM, {"horizon": 2}, "a horizon goes with the study of a scenario"),
        ("covid", {"total_epsilons": 2}, "total_epsilons and delta go with a horizon"),
        ("covid", {"horizon": 2, "epsilons": 1}, "epsilons go with one decision: over days give total_epsilons"),
        ("covid", {"policies": [ps.make_policy("optimal")]}, "policies of a study are names from the catalogue, got"),
        ("covid", {"policies": {"mine": np.ones((2, 2))}}, "policies of a study are names from the catalogue, got"),
        ("warfarin", {"horizon": 2}, "is a study of a cohort: this needs the model of a scenario"),
    ],
)
def test_what_cannot_be_asked_is_named(of, asked, words):
    with pytest.raises(ValueError, match=words):
        ps.report(of, **asked)


def test_the_function_stays_when_a_module_of_the_package_of_this_name_is_imported():
    importlib.import_module("policysim.report.findings")
    assert callable(ps.report)
