"""`choose` of a log: what is chosen obeys the verdict on patients held out."""

from dataclasses import replace
from html import escape

import numpy as np
import pandas as pd
import pytest
from small_trials import OF_SUCCESS, make_trial

from policysim.decision.choose import Wish, choose
from policysim.decision.choose_findings import DOUBTED, EACH, MECHANISM, SINGLE, UNSURE, find
from policysim.decision.choose_report import to_judge
from policysim.report.findings import BETTER, EQUAL, NOT_SHOWN, WORSE
from policysim.study.labels import labels_of
from policysim.study.study_problem import problem_of_log
from policysim.trials import trial_columns
from policysim.trials.trial_columns import compare_log, judged_on_splits

POLICIES = ["optimal", "randomized-response", "exponential"]


def answered(trial, judged=None, *, seen="treatment"):
    study, problem = replace(trial.study, seen=seen), problem_of_log(trial.study, trial.log)
    choices = choose(problem, Wish(keep=0.5), POLICIES)
    verdicts = judged_on_splits(study, trial.log, to_judge(choices)) if judged is None else judged(choices)
    return choices, verdicts, find(problem, choices, labels_of(study, problem), held_out=verdicts, study=study)


def chosen_policy(findings):
    """The policy of the option that is chosen."""
    return findings.options.set_index("option").loc[findings.details.chosen, "policy"]


# Of seed 1 one treatment for all does what is asked for by the fitted scores, too.
@pytest.mark.parametrize("seed", [0, 2, 3, 4])
def test_where_no_patient_differs_one_treatment_for_all_is_chosen(seed, monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 3)
    _, verdicts, findings = answered(make_trial(600, 0.0, seed=seed))
    details = findings.details
    assert BETTER not in set(verdicts["verdict"])
    assert details.choice == UNSURE
    assert findings.options.set_index("option").loc[details.chosen, "hides"] == "everything"
    # No share of a gain that may be none.
    assert not details.shares
    # Arms that are equal on average are ranked by chance alone.
    assert not verdicts.attrs["best_arm"]
    assert any("do not show which single treatment is the best" in text for text in findings.warnings)


def test_a_planted_gain_is_chosen_with_its_interval(monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 3)
    trial = make_trial(1200, 0.35, seed=5)
    choices, verdicts, findings = answered(trial)
    chosen = choices.least["policy"]
    assert (findings.details.choice, chosen_policy(findings)) == (MECHANISM, chosen)
    assert findings.details.shares
    # What is said is what the mechanism is worth by the truth, against the best one for all.
    table = choices.mechanisms[chosen].probabilities(problem_of_log(trial.study, trial.log))
    worth = trial.shares @ (trial.truth * table).sum(axis=1) - (trial.shares @ trial.truth).max()
    ends = verdicts.set_index("policy").loc[chosen]
    assert ends["low"] - 0.03 <= worth <= ends["high"] + 0.03


def test_the_interval_is_that_of_compare(monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 2)
    trial = make_trial(400, 0.1, seed=7)
    choices, verdicts, findings = answered(trial)
    least = choices.least
    asked = replace(
        trial.study, policies=("greedy", least["policy"]), epsilon=least["epsilon"], epsilons=(least["epsilon"],)
    )
    compared = compare_log(asked, trial.log).set_index("policy")
    printed = findings.details.verdicts.set_index("policy")
    for name in verdicts["policy"]:
        theirs = compared.loc[name, ["difference", "difference_low", "difference_high"]].to_numpy(dtype=float)
        np.testing.assert_allclose(printed.loc[name, ["value", "low", "high"]].to_numpy(dtype=float), theirs)


@pytest.mark.parametrize("seen", ["treatment", "publication"])
@pytest.mark.parametrize("of_each", [BETTER, NOT_SHOWN])
@pytest.mark.parametrize("verdict", [BETTER, WORSE, NOT_SHOWN, EQUAL])
def test_nothing_is_chosen_against_its_verdict(verdict, of_each, seen):
    def judged(choices):
        rows = [("greedy", 0.1, -0.1, 0.3, of_each), (choices.least["policy"], 0.1, -0.1, 0.3, verdict)]
        return pd.DataFrame(rows, columns=["policy", "value", "low", "high", "verdict"])

    choices, _, findings = answered(make_trial(300, 0.2, seed=1), judged, seen=seen)
    details = findings.details
    copied = seen == "publication" and of_each == BETTER
    assert (details.choice == EACH) == copied
    assert (chosen_policy(findings) == choices.least["policy"]) == (verdict == BETTER and not copied)
    assert copied or verdict == BETTER or details.choice in {UNSURE, SINGLE}
    assert details.shares == (of_each == BETTER)


def test_without_a_judge_nothing_of_a_log_is_shown():
    trial = make_trial(300, 0.3, seed=2)
    problem = problem_of_log(trial.study, trial.log)
    unknown = pd.DataFrame(columns=["policy", "value", "low", "high", "verdict"])
    choices = choose(problem, Wish(keep=0.5), POLICIES)
    findings = find(problem, choices, labels_of(trial.study, problem), held_out=unknown, study=trial.study)
    assert findings.details.choice in {UNSURE, SINGLE}


@pytest.mark.usefixtures("blank_drawings", "one_split")
def test_the_command_judges_a_log(tmp_path, run, document):
    rng = np.random.default_rng(0)
    columns = {"arm": np.arange(240) % 2, "sex": rng.integers(0, 2, 240), "success": rng.integers(0, 2, 240)}
    pd.DataFrame(columns).to_csv(tmp_path / "trial.csv", index=False)
    assert run("init", tmp_path / "trial.csv", *OF_SUCCESS)[0] == 0
    made = document("choose", tmp_path / "trial.toml", "--keep", "50%", "--out", tmp_path / "out")
    assert made["details"]["choice"] in {UNSURE, SINGLE}
    assert {row["policy"]: row["verdict"] for row in made["verdicts"]}["greedy"] == NOT_SHOWN
    # The report is that of compare for a log, after the choice, and comes out again.
    assert (tmp_path / "out" / "report.html").exists() and (tmp_path / "out" / "arms.csv").exists()
    # Whatever both parts of the page warn of stands there once.
    page, expected = (tmp_path / "out" / "report.html").read_text(encoding="utf-8"), made["warnings"]
    assert "1 guess marked # CHECK is unread: what follows is only as good as that." in expected
    assert any("do not show which single treatment is the best" in text for text in expected)
    for warning in expected:
        assert page.count(f'<p class="warning">{escape(warning)}</p>') == 1
    # Patients are not copied: beside the study and its data.
    (tmp_path / "trial.toml").rename(tmp_path / "out" / "study.toml")
    (tmp_path / "trial.csv").rename(tmp_path / "out" / "trial.csv")
    assert run("reproduce", tmp_path / "out" / "manifest.json")[0] == 0


@pytest.fixture
def villages(tmp_path):
    """The study of a trial whose villages are each wholly in one arm, which it says nothing of."""
    rng = np.random.default_rng(0)
    village = np.repeat(np.arange(36), 10)
    arm, sex = village % 2, rng.choice(["f", "m"], 360)
    success = rng.random(360) < np.where(arm == (sex == "f"), 0.8, 0.3)
    columns = {"arm": arm, "sex": sex, "village": [f"v{name}" for name in village], "y": success.astype(int)}
    pd.DataFrame(columns).to_csv(tmp_path / "trial.csv", index=False)
    path = tmp_path / "study.toml"
    path.write_text(
        '[data]\nfile = "trial.csv"\ntreatment = "arm"\npropensity = "equal"\noutcome = { y = 1 }\n'
        '[data.treatments]\n0 = "old"\n1 = "new"\n[data.features]\nsex = { levels = ["f", "m"] }\n'
    )
    return path


@pytest.fixture
def table(tmp_path):
    """A policy for that trial."""
    path = tmp_path / "policy.csv"
    path.write_text("sex,p_old,p_new\nf,0,1\nm,1,0\n")
    return path


@pytest.mark.usefixtures("blank_drawings", "one_split")
def test_nothing_is_chosen_where_compare_draws_no_conclusion(villages, tmp_path, screen, document):
    warnings = []
    for command, *options in (["compare"], ["choose", "--keep=50%"], ["choose", "--keep=-1"]):
        made = document(command, villages, *options, "--out", tmp_path / command)
        warnings.append([text for text in made["warnings"] if text.startswith("village")])
        if command == "choose":
            assert (made["details"]["choice"], made["details"]["chosen"]) == (DOUBTED, "")
    assert warnings[0] == warnings[1] == warnings[2] and "decides the treatment" in warnings[0][0]
    words = screen("choose", villages, "--keep=50%")
    assert "Warning: village" in words and "This log cannot answer the question: see the warning." in words
    assert "Choose " not in words and "no conclusion" in words
    # With the line that the warning gives, the planted gain is found.
    villages.write_text(villages.read_text().replace("treatment =", 'cluster = "village"\ntreatment =', 1))
    words = screen("choose", villages, "--keep=50%")
    assert "Warning: village" not in words and "Choose B" in words
    # What is fitted and what is held out are told apart.
    assert "what it has by the fitted scores" in words and "At its least ε, fitted" in words
    assert "patients who were not used to build B:" in words


@pytest.mark.usefixtures("few_trees", "one_split")
def test_choice_and_evaluation_name_confounding_and_unread_guesses(villages, table, screen):
    trial = villages.with_name("trial.csv")
    pd.read_csv(trial).drop(columns="village").to_csv(trial, index=False)
    villages.write_text(villages.read_text().replace('"equal"', '"estimate"  # CHECK'))
    for command, *options in (["choose", "--keep", "50%"], ["evaluate", "--table", table]):
        words = screen(command, villages, *options)
        assert words.startswith("Warning: 1 guess marked # CHECK is unread: what follows is only as good as that. ")
        assert words.count("Warning: Propensities are estimated from the declared features") == 1


def test_an_evaluation_concludes_nothing_where_compare_does_not(villages, table, screen, document):
    words = screen("evaluate", villages, "--table", table)
    assert words.startswith("Warning: village is left out of the study and decides the treatment")
    assert "This log cannot answer the question" in words and "the policy is better" not in words
    made = document("evaluate", villages, "--table", table)
    assert made["best_single_arm"]["verdict"] == NOT_SHOWN and made["best_single_arm"]["interval"][0] > 0
    assert made["warnings"][0].startswith("village")


def test_a_log_has_no_outcome_that_leads(villages, run):
    code, _, err = run("choose", villages, "--max-extra-lead", "5")
    assert code == 2
    assert "--max-extra-lead needs an outcome that leads" in err and "--keep or --max-loss" in err
    assert "max_extra_lead" not in err
