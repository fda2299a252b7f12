"""What `policysim choose` chooses from a log is never against the verdict on patients held out, as `compare` has it."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from small_trials import make_trial

from policysim.cli.main import main
from policysim.decision.choose import Wish, choose
from policysim.decision.choose_report import report_of_choices, to_judge
from policysim.report.findings import BETTER, EQUAL, NOT_SHOWN, WORSE
from policysim.study.study_problem import problem_of_log
from policysim.trials import trial_columns
from policysim.trials.trial_columns import compare_log, judged_on_splits

POLICIES = ["optimal", "randomized-response", "exponential"]


def answered(trial, judged=None, *, seen="treatment"):
    """The choices, the verdicts on patients held out, and the report."""
    study, problem = replace(trial.study, seen=seen), problem_of_log(trial.study, trial.log)
    choices = choose(problem, Wish(keep=0.5), POLICIES)
    found = judged_on_splits(study, trial.log, to_judge(choices)) if judged is None else judged(choices)
    return choices, found, report_of_choices(study, problem, choices, held_out=found)


# Of seed 1 one treatment for all does what is asked for by the fitted scores, too.
@pytest.mark.parametrize("seed", [0, 2, 3, 4])
def test_where_no_patient_differs_one_treatment_for_everyone_is_chosen(seed, monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 3)
    _, found, report = answered(make_trial(600, 0.0, seed=seed))
    assert BETTER not in set(found["verdict"])
    assert (report.findings.details.chosen, report.exit_code) == ("A", 0)
    assert "none is shown to be better than A. On patients who were not used to build it" in report.screen.advice
    # No share of a gain that may be none.
    assert "gain kept" not in report.screen.tables[0].head


def test_a_planted_gain_is_chosen_with_its_interval(monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 3)
    trial = make_trial(1200, 0.35, seed=5)
    choices, found, report = answered(trial)
    name = choices.least["policy"]
    options = report.findings.options
    assert options.loc[options["chosen"], "policy"].tolist() == [name]
    assert "Choose B at ε = " in report.screen.advice and "(95\u00a0% interval)" in report.screen.advice
    assert "gain kept" in report.screen.tables[0].head
    # The interval is about the mechanism's true worth, against the best treatment for everyone.
    table = choices.mechanisms[name].probabilities(problem_of_log(trial.study, trial.log))
    worth = trial.shares @ (trial.truth * table).sum(axis=1) - (trial.shares @ trial.truth).max()
    ends = found.set_index("policy").loc[name]
    assert ends["low"] - 0.03 <= worth <= ends["high"] + 0.03


def test_the_interval_is_that_of_compare(monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 2)
    trial = make_trial(400, 0.1, seed=7)
    choices, found, _ = answered(trial)
    least = choices.least
    asked = replace(
        trial.study, policies=("greedy", least["policy"]), epsilon=least["epsilon"], epsilons=(least["epsilon"],)
    )
    compared = compare_log(asked, trial.log).set_index("policy")
    for name, *ends in found[["policy", "value", "low", "high"]].itertuples(index=False):
        theirs = compared.loc[name, ["difference", "difference_low", "difference_high"]]
        np.testing.assert_allclose(ends, theirs.to_numpy(dtype=float))


@pytest.mark.parametrize("seen", ["treatment", "publication"])
@pytest.mark.parametrize("of_each", [BETTER, NOT_SHOWN])
@pytest.mark.parametrize("verdict", [BETTER, WORSE, NOT_SHOWN, EQUAL])
def test_nothing_is_chosen_against_its_verdict(verdict, of_each, seen):
    def judged(choices):
        rows = [("greedy", 0.1, -0.1, 0.3, of_each), (choices.least["policy"], 0.1, -0.1, 0.3, verdict)]
        return pd.DataFrame(rows, columns=["policy", "value", "low", "high", "verdict"])

    _, _, report = answered(make_trial(300, 0.2, seed=1), judged, seen=seen)
    private = "B" if verdict == BETTER else "A"
    assert report.findings.details.chosen == ("C" if seen == "publication" and of_each == BETTER else private)
    assert report.findings.details.shares == (of_each == BETTER)


def test_without_a_judge_no_mechanism_of_a_log_is_shown_to_be_better():
    trial = make_trial(300, 0.3, seed=2)
    problem = problem_of_log(trial.study, trial.log)
    report = report_of_choices(trial.study, problem, choose(problem, Wish(keep=0.5), POLICIES))
    assert report.findings.details.chosen == "A"
    assert "Nobody has tested B against A on other patients." in report.screen.advice


def test_the_command_judges_a_log(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 1)
    rng = np.random.default_rng(0)
    columns = {"arm": np.arange(240) % 2, "sex": rng.integers(0, 2, 240), "success": rng.integers(0, 2, 240)}
    pd.DataFrame(columns).to_csv(tmp_path / "trial.csv", index=False)
    assert main(["init", str(tmp_path / "trial.csv")]) == 0
    capsys.readouterr()
    assert main(["choose", str(tmp_path / "trial.toml"), "--keep", "50%", "--json"]) == 0
    details = json.loads(capsys.readouterr().out)["details"]
    assert details["chosen"] == "A"
    assert {row["policy"]: row["verdict"] for row in details["verdicts"]}["greedy"] == NOT_SHOWN
