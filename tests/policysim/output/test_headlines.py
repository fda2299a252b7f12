"""The finding of each kind of question as a title with one number: true for every study that can reach it."""

import json
import math
from dataclasses import replace

import pandas as pd
import pytest
from decisions import findings_of
from policysim.decision.headline import headline
from small_studies import STUDY, write_small_study

import policysim as ps
from policysim.cli.main import main
from policysim.question.formats import percent


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


def test_a_manifest_has_the_headline_and_what_is_seen_in_the_card(tmp_path, draw_only):
    draw_only("card")
    assert main(["compare", "marital-status", "--out", str(tmp_path)]) == 0
    said = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))["headline"]
    assert list(said) == ["finding", "number", "about", "seen"]
    assert all(said.values())
    assert pd.Series(said).map(type).eq(str).all()
    for kind in ("svg", "png"):
        assert (tmp_path / "figures" / f"card.{kind}").stat().st_size < 60_000
