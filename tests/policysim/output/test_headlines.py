"""The finding of each kind of question as a title with one number: true for every study that can reach it."""

import json
import math
from dataclasses import replace

import pandas as pd
import pytest
from decisions import findings_of
from policysim.decision.headline import headline
from small_studies import STUDY, write_small_study
from small_trials import make_trial

import policysim as ps
from policysim.cli.main import main
from policysim.question.formats import percent
from policysim.trials.diagnostics import log_caveats
from policysim.trials.trial_columns import compare_log
from policysim.trials.trial_findings import find as find_in_log
from policysim.trials.trial_question import tables_of
from policysim.trials.trial_screen import headline as trial_headline


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return ps.load_study(write_small_study(tmp_path_factory.mktemp("small"), STUDY))


@pytest.fixture(scope="module")
def compared(study):
    problem = ps.build_problem(study)
    policies = ["greedy", "best-fixed", "uniform", "exponential", "optimal"]
    table = ps.compare(problem, policies=policies, epsilons=study.epsilons)
    return findings_of(replace(study, policies=tuple(policies), epsilon=4.0), problem), table


def at(table, policy, epsilon=4.0):
    return table[(table["policy"] == policy) & (table["epsilon"] == epsilon) & (table["group"] == "all")].iloc[0]


def test_a_decision_is_headed_by_what_the_best_keeps_and_its_deaths_beside_one_for_all(compared):
    findings, table = compared
    said = headline(findings, table)
    kept = percent(at(table, "optimal")["benefit_kept"])
    assert said.number == kept
    assert said.finding.startswith(
        f"At ε = 4, the best private choice keeps {kept} of the benefit of choosing for each patient and costs "
    )
    more = at(table, "optimal")["extra_deaths"] - at(table, "best-fixed")["extra_deaths"]
    assert ("more deaths" in said.finding) == (more > 0)
    assert said.finding.endswith(f"than giving everybody {findings.one_for_all}")
    assert said.about.endswith("by optimal; no mechanism that gives what it publishes keeps more")


def test_where_nothing_beats_one_for_all_that_is_the_finding(compared):
    findings, table = compared
    rows = [replace(row, benefit_kept=min(row.benefit_kept, 0.0)) for row in findings.rows]
    said = headline(replace(findings, rows=rows), table.assign(most_kept=0.0))
    assert said.finding == f"At ε = 4, no private choice is worth more than giving everybody {findings.one_for_all}"


def test_without_a_proof_the_best_is_only_the_best_that_was_compared(compared):
    findings, table = compared
    rows = [row for row in findings.rows if row.policy != "optimal"]
    some = table[table["policy"] != "optimal"].assign(most_kept=math.nan)
    kept = at(table, "exponential")["benefit_kept"]
    said = headline(replace(findings, rows=rows), some)
    assert said.number == percent(kept)
    wanted = "the best private choice that was compared keeps" if kept > 0 else "that was compared is worth more than"
    assert wanted in said.finding
    assert "none" not in said.about


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"unused": ("sex",), "used": False}, "uses nothing of what is hidden"),
        ({"rows": []}, "costs no privacy; no private choice for each was compared"),
    ],
)
def test_where_there_is_no_finding_that_is_the_title(compared, changes, words):
    findings, table = compared
    said = headline(replace(findings, **changes), table)
    assert words in said.finding
    assert said.number == ""


def test_where_nothing_is_to_be_gained_no_share_is_said(compared):
    findings, table = compared
    gain = findings.gain
    same, little = replace(gain, fixed=gain.best), replace(gain, fixed=gain.best - 1e-9, rounding=0.0)
    assert headline(replace(findings, gain=same), table).finding.endswith(
        "is as good as the best treatment for each patient"
    )
    said = headline(replace(findings, gain=little), table)
    assert "is nearly as good as" in said.finding
    assert "%" not in said.number


@pytest.fixture(scope="module")
def trial():
    made = make_trial(300, 0.0, seed=4, policies=("best-fixed", "exponential"))
    table = compare_log(replace(made.study, policies=("greedy", "best-fixed", "exponential", "uniform")), made.log)
    doubts = log_caveats(made.log, made.study.log)
    return find_in_log(made.study, made.log, tables_of(made.study, made.log, table, doubts), doubts)


@pytest.mark.parametrize(
    ("gain", "changes", "words"),
    [
        ((0.1, 0.02, 0.2), {}, "Choosing for each patient is better than giving everybody"),
        ((-0.1, -0.2, -0.02), {}, "is worse than giving everybody"),
        ((0.01, -0.02, 0.04), {}, "patients show no gain from choosing for each of them over giving everybody"),
        ((0.0, 0.0, 0.0), {}, "choose as well for each patient as giving everybody"),
        ((0.1, 0.02, 0.2), {"not_covered": "the log has a hole"}, "cannot show whether choosing for each patient"),
    ],
)
def test_a_trial_is_headed_by_a_gain_only_where_its_interval_shows_one(trial, gain, changes, words):
    said = trial_headline(replace(trial, gain=gain, **changes))
    assert words in said.finding
    assert (said.number == "") == (not any(gain))


def test_a_manifest_has_the_headline_and_what_is_seen_in_the_card(tmp_path, draw_only):
    draw_only("card")
    assert main(["compare", "marital-status", "--out", str(tmp_path)]) == 0
    said = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))["headline"]
    assert list(said) == ["finding", "number", "about", "seen"]
    assert all(said.values())
    assert pd.Series(said).map(type).eq(str).all()
    for kind in ("svg", "png"):
        assert (tmp_path / "figures" / f"card.{kind}").stat().st_size < 60_000
