"""Events beside death: counted by hand, and among the options."""

from pathlib import Path

import numpy as np
import pytest

import policysim as ps
from envs import ResponseModel
from policysim.cli.main import main
from policysim.decision.report import report

LANGUAGE = Path(__file__).parents[2] / "envs" / "data" / "language.toml"
STUDY = """
scenario = "language.toml"
[privacy]
public = ["pregnancy", "age", "asthma", "clots", "fever"]
epsilons = [0.5, 1.0]
[compare]
policies = ["best-fixed", "randomized-response", "optimal"]
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    (folder / "language.toml").write_text(LANGUAGE.read_text())
    (folder / "study.toml").write_text(STUDY)
    return folder / "study.toml"


def test_events_are_columns_of_a_comparison_and_can_be_bounded(study):
    loaded = ps.load_study(study)
    problem = ps.build_problem(loaded)
    assert loaded.counted == ("death", "symptoms", "stroke", "bleeding")
    assert loaded.outcomes == (*loaded.counted, *loaded.scenario.transient, "costs") == tuple(problem.outcomes)
    policy = ps.make_policy("randomized-response", epsilon=1.0)
    table = ps.compare(problem, policies=["greedy", "best-fixed", policy], epsilons=[1.0]).set_index("policy")
    happens = ResponseModel(loaded.scenario).probability("stroke")
    by_hand = {
        "greedy": np.take_along_axis(happens, problem.best_actions[:, None], axis=1)[:, 0],
        "best-fixed": (ps.make_policy("best-fixed").probabilities(problem) * happens).sum(axis=1),
        "randomized-response": (policy.probabilities(problem) * happens).sum(axis=1),
    }
    for name, expected in by_hand.items():
        assert table.loc[name, "expected_stroke"] == pytest.approx(problem.prior @ expected, abs=1e-12)
    extra = problem.prior @ (by_hand["randomized-response"] - by_hand["best-fixed"])
    assert table.loc["randomized-response", "extra_stroke"] == pytest.approx(extra, abs=1e-12)
    most = 0.5 * (table.loc["greedy", "expected_stroke"] + table.loc["randomized-response", "expected_stroke"])
    bounded = ps.make_policy("optimal", epsilon=4.0, at_most={"stroke": most})
    kept = problem.prior @ (bounded.probabilities(problem) * happens).sum(axis=1)
    assert kept <= most * (1 + 1e-9)


def test_events_are_among_what_the_options_count(study):
    loaded = ps.load_study(study)
    findings = report(loaded).findings
    table = ps.compare(ps.build_problem(loaded), policies=["greedy"], epsilons=[1.0])
    best = findings.options.query("option == 'C' and epsilon == 1")
    rows = findings.details.table.set_index("outcome")
    for name, title in (("stroke", "ischaemic stroke"), ("bleeding", "bleeding")):
        rate = table.loc[0, f"expected_{name}"]
        assert best[f"expected_{name}"].item() == pytest.approx(rate)
        assert name in set(findings.differences["outcome"])
        if name in rows.index:
            assert rows.loc[name, "C"] == pytest.approx(rate * findings.details.patients, abs=1)
            assert rows.loc[name, "title"] == title


def test_no_event_is_called_what_symptoms_are_counted_as(study, tmp_path, capsys):
    text = LANGUAGE.read_text().replace("[events.bleeding", "[events.symptoms").replace("bleeding", "symptoms")
    (tmp_path / "language.toml").write_text(text)
    (tmp_path / "study.toml").write_text(study.read_text())
    assert main(["compare", str(tmp_path / "study.toml")]) == 2
    assert "symptoms is the count of all symptoms: an event needs another name" in capsys.readouterr().err
