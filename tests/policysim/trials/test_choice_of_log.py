"""What `policysim choose` chooses from a log is never against the verdict on patients held out, as `compare` has it."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from small_trials import make_trial

from policysim.cli.main import main
from policysim.decision.choice_answer import to_judge
from policysim.decision.choice_question import answer_of_choices
from policysim.decision.choose import Wish, choose
from policysim.output.screen import screen
from policysim.study.certainty import BETTER, EQUAL, NOT_BETTER, UNTOLD
from policysim.study.study_problem import problem_of_log
from policysim.trials import trial_columns
from policysim.trials.trial_columns import compare_log, judged_on_splits

POLICIES = ["optimal", "randomized-response", "exponential"]


def answered(trial, judged=None, *, seen="treatment"):
    study, problem = replace(trial.study, seen=seen), problem_of_log(trial.study, trial.log)
    choices = choose(problem, Wish(keep=0.5), POLICIES)
    found = judged_on_splits(study, trial.log, to_judge(choices)) if judged is None else judged(choices)
    return choices, found, answer_of_choices(study, problem, choices, held_out=found)


def said(answer):
    """The screen as one line of words, and what is chosen."""
    return " ".join(screen(answer.options, answer.kind).split()), answer.document["chosen"]


# Of seed 1 one treatment for all does what is asked for by the fitted scores, too.
@pytest.mark.parametrize("seed", [0, 2, 3, 4])
def test_where_no_patient_differs_one_treatment_for_all_is_chosen(seed, monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 3)
    _, found, answer = answered(make_trial(600, 0.0, seed=seed))
    assert BETTER not in set(found["verdict"])
    text, chosen = said(answer)
    assert (chosen, answer.exit_code) == ("one for all", 0)
    assert "for all: whoever sees it learns nothing." in text
    assert "(95 % interval) more than one treatment for all" in text
    # No share of a benefit that may be none, but what was asked for.
    assert "benefit kept" not in set(answer.options["options"]["row"])
    assert text.count("%") == 2
    assert "better than one for all." not in text


def test_a_planted_gain_is_chosen_with_its_interval(monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 3)
    trial = make_trial(1200, 0.35, seed=5)
    choices, found, answer = answered(trial)
    text, chosen = said(answer)
    assert chosen == choices.least["policy"]
    assert "Certain? Better: on patients who had no part in making it" in text
    assert "benefit kept" in set(answer.options["options"]["row"])
    # What is told is what the mechanism is worth by the truth, against the best one for all.
    table = choices.mechanisms[chosen].probabilities(problem_of_log(trial.study, trial.log))
    worth = trial.shares @ (trial.truth * table).sum(axis=1) - (trial.shares @ trial.truth).max()
    ends = found.set_index("policy").loc[chosen]
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
@pytest.mark.parametrize("of_each", [BETTER, UNTOLD])
@pytest.mark.parametrize("verdict", [BETTER, NOT_BETTER, UNTOLD, EQUAL])
def test_nothing_is_chosen_against_its_verdict(verdict, of_each, seen):
    def judged(choices):
        rows = [("greedy", 0.1, -0.1, 0.3, of_each), (choices.least["policy"], 0.1, -0.1, 0.3, verdict)]
        return pd.DataFrame(rows, columns=["policy", "value", "low", "high", "verdict"])

    choices, _, answer = answered(make_trial(300, 0.2, seed=1), judged, seen=seen)
    _, chosen = said(answer)
    copied = seen == "publication" and of_each == BETTER
    private = choices.least["policy"] if verdict == BETTER else "one for all"
    assert chosen == ("each's best" if copied else private)
    assert ("benefit kept" in set(answer.options["options"]["row"])) == (of_each == BETTER)


def test_without_a_judge_nothing_of_a_log_can_be_told():
    trial = make_trial(300, 0.3, seed=2)
    problem = problem_of_log(trial.study, trial.log)
    answer = answer_of_choices(trial.study, problem, choose(problem, Wish(keep=0.5), POLICIES))
    assert said(answer)[1] == "one for all"


def test_the_command_judges_a_log(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 1)
    rng = np.random.default_rng(0)
    columns = {"arm": np.arange(240) % 2, "sex": rng.integers(0, 2, 240), "success": rng.integers(0, 2, 240)}
    pd.DataFrame(columns).to_csv(tmp_path / "trial.csv", index=False)
    assert main(["init", str(tmp_path / "trial.csv")]) == 0
    capsys.readouterr()
    out = str(tmp_path / "out")
    options = ["--keep", "50%", "--json", "--out", out]
    assert main(["choose", str(tmp_path / "trial.toml"), *options]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["chosen"] == "one for all"
    assert {row["policy"]: row["verdict"] for row in document["certainty"]}["greedy"] == UNTOLD
    # The report is that of compare for a log, after the choice, and comes out again.
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "for all: whoever sees it learns nothing." in page.partition('id="compared"')[0]
    assert (tmp_path / "out" / "arms.csv").exists()
    # Patients are not copied: beside the study and its data.
    (tmp_path / "trial.toml").rename(tmp_path / "out" / "study.toml")
    (tmp_path / "trial.csv").rename(tmp_path / "out" / "trial.csv")
    assert main(["reproduce", str(tmp_path / "out" / "manifest.json")]) == 0
