"""The headings of a page say what its own tables say, in every kind of study."""

import io
import json
import math
import re

import pandas as pd
import pytest
from report_pages import make_report, readable
from small_studies import STUDY

from policies.catalogue import CATALOGUE
from policysim.question import words

SENSITIVE = STUDY.replace('adjacency = "any-record"', 'adjacency = "sensitive"\nsensitive = ["infected"]')
STUDIES = {
    "all": STUDY.replace('"exponential", "rand', '"exponential", "optimal", "optimal-safe", "rand'),
    "sensitive": SENSITIVE.replace('"exponential", "rand', '"exponential", "optimal", "rand'),
    "public": STUDY.replace('adjacency = "any-record"', 'public = ["age"]'),
    "one feature": STUDY.replace('"any-record"', '"one-feature"'),
    "one policy": re.sub(r"policies = .*", 'policies = ["randomized-response"]', STUDY),
    "one epsilon": re.sub(r"epsilons = .*", "epsilons = [1.0]", STUDY),
    "nothing spent": re.sub(r"policies = .*", 'policies = ["best-fixed", "greedy"]', STUDY),
    "no groups": re.sub(r"by = .*", "", STUDY),
    "at 0": STUDY.replace("epsilon = 1.0", "epsilon = 0", 1).replace("[0.5, 1.0", "[0, 1.0"),
    "at infinity": STUDY.replace("epsilon = 1.0", "epsilon = inf", 1).replace("4.0]", "inf]"),
}


@pytest.fixture(scope="module", params=STUDIES)
def made(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        # What is drawn is not looked at here.
        patch.setattr("policysim.report.deliver.FigureFiles.of", _blank)
        return make_report(tmp_path_factory.mktemp("headings"), STUDIES[request.param], prices=True)


def _blank(_files, _drawing):
    from policysim.report.deliver import Vector  # noqa: PLC0415

    return {}, Vector('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"></svg>', [])


def heading(report, name):
    """The finding of a section, without its subject; empty where the section has none."""
    found = re.search(rf'<hgroup id="{name}"><p class="kicker">.*?</p><h3>(.*?)</h3>', report.page)
    return readable(found[1]) if found else ""


def table(report, name):
    return pd.read_csv(io.BytesIO(report.files[name]))


def now(report, group="all"):
    rows = report.table
    return rows[(rows["epsilon"] == report.study.epsilon) & (rows["group"] == group)].set_index("policy")


def private(report):
    return [name for name in report.study.policies if name in CATALOGUE and CATALOGUE[name].uses_epsilon]


def test_as_many_mechanisms_as_are_said_are_worth_more_than_one_for_all(made):
    rows, names = now(made), private(made)
    better = [name for name in names if rows["value"][name] > rows["value"]["best-fixed"] + 1e-12]
    said = heading(made, "policies")
    if not names:
        assert said == ""
    elif len(names) == 1:
        assert ("is worth more" in said) == bool(better)
    else:
        number = {0: "none", 1: "one", len(names): "all"}.get(len(better), str(len(better)))
        assert f"{number} of the {len(names)} mechanisms" in said


def test_the_group_that_is_named_loses_most(made):
    said = heading(made, "groups")
    first = made.page.partition("<option selected>")[2].partition("</option>")[0]
    rows = made.table[(made.table["epsilon"] == made.study.epsilon) & (made.table["policy"] == first)]
    groups = rows[(rows["group"] != "all")]
    if groups.empty or rows["loss"].iloc[0] < 1e-12:
        assert said == ""
        return
    assert f"under {first}" in said
    if "all groups" not in said:
        worst = groups.loc[groups["loss"].idxmax()]
        assert words.level_name(worst["group"], worst["level"]) in said
        times = float(re.search(r"([\d.]+) times", said)[1])
        assert times == pytest.approx(worst["loss"] / rows["loss"].iloc[0], rel=0.05)


def test_what_is_gained_and_lost_most_is_that_of_the_table(made):
    said, parts = heading(made, "parts"), table(made, "losses-by-outcome.csv")
    first = made.page.partition("<option selected>")[2].partition("</option>")[0]
    lost = parts.pivot_table(index="outcome", columns="policy", values="lost")
    if first not in lost:
        assert said == ""
        return
    gained = lost["best-fixed"] - lost[first]
    for verb, name, change in (("gains", gained.idxmax(), gained.max()), ("loses", gained.idxmin(), -gained.min())):
        title = "the costs of treatments" if name not in made.study.scenario.outcomes else f"“{name}”"
        assert (f"{verb} most in {title.replace('_', ' ')}" in said) == (change > 1e-12)


def test_the_belief_that_moves_most_moves_from_and_to_what_the_table_has(made):
    said = heading(made, "observer")
    if "beliefs.csv" not in made.files:
        assert said == ""
        return
    rows = table(made, "beliefs.csv")
    change = pd.concat([rows["most"] - rows["before"], rows["before"] - rows["least"]], axis=1).max(axis=1)
    if change.max() < 1e-6:
        assert said == ""
        return
    row = rows.loc[change.round(9).idxmax()]
    before, after = map(float, re.search(r"from ([\d.]+) to ([\d.]+) of 100", said).groups())
    assert abs(after - before) == pytest.approx(100 * change.max(), abs=1.5)
    assert said.startswith(f"At ε = {words.plain(made.study.epsilon)}, {row['policy']} ")


def test_the_dearest_feature_is_first_in_the_price_list(made):
    rows = table(made, "prices.csv")
    single = rows[rows["used"] & (rows["hides"] != "whole record")]
    said = heading(made, "prices")
    if single["loss"].max() > 1e-12:
        assert f"“{single['hides'].iloc[0].replace('_', ' ')}”" in said
        assert words.percent(single["benefit_kept"].iloc[0]).replace("\u00a0", " ") in said
    else:
        assert "costs nothing" in said


def test_what_stays_the_best_in_the_redraws_is_counted_there(made):
    rows, said = table(made, "findings.csv").set_index("quantity"), heading(made, "model")
    if "redraws_with_this_first" not in rows.index or not private(made):
        assert "redraws" not in said or "redraws_with_this_first" in rows.index
        return
    first = rows.loc["redraws_with_this_first"]
    assert said.startswith(f"{first['subject']} stays the best in {first['value']:g} of {rows['value']['redraws']:g}")


def test_what_no_mechanism_exceeds_is_said_only_where_it_is_proven(made):
    most = now(made)["most_kept"].min()
    said = heading(made, "limit")
    assert bool(said) == (not math.isnan(most) and most <= 0.99)
    if said:
        assert words.percent_up(most).replace("\u00a0", " ") in said


def test_the_least_that_a_mechanism_spends_is_its_own(made):
    said, rows = heading(made, "spent"), now(made)
    if "spends" in said and "every" not in said:
        name = said.partition(",")[0]
        assert rows["epsilon_spent"][name] == rows["epsilon_spent"][private(made)].min()
        spent = float(said.rpartition("spends ")[2])
        assert spent == pytest.approx(rows["epsilon_spent"][name], rel=0.05, abs=1e-9)


def test_the_brief_has_the_title_of_the_manifest_and_numbers_beside_one_for_all(made):
    page, rows = made.page, now(made)
    finding = json.loads(made.files["manifest.json"])["headline"]["finding"]
    assert readable(re.search(r"<h1>(.*?)</h1>", page)[1]) == readable(finding)
    strip = page.partition('<dl class="strip">')[2].partition("</dl>")[0]
    tiles = re.findall(r'data-show="(\w+)" data-value="([^"]*)">.*?one for all: <b>(.*?)</b>', strip)
    assert [name for name, _, _ in tiles] == ["extra_deaths", "worse_than_untreated", "guess_rate"]
    first = page.partition("<option selected>")[2].partition("</option>")[0]
    for name, value, _ in tiles:
        assert float(value) == pytest.approx(rows[name][first], rel=1e-5, abs=1e-12)
    assert tiles[0][2] == words.events(rows["extra_deaths"]["best-fixed"], 100_000, sign=True)


def test_deaths_are_counted_among_the_same_number_of_patients_all_over_the_page(made):
    body = re.sub(r"<svg.*?</svg>|<script.*?</script>", "", made.page, flags=re.DOTALL)
    bases = set(re.findall(r"deaths\s+(?:among them, )?per ([\d,]+)", readable(body)))
    assert bases == {"100,000"}


def test_no_sentence_of_the_brief_is_long(made):
    points = made.page.partition('<div class="points">')[2].partition('<div class="linked">')[0]
    sentences = [readable(text) for text in re.findall(r"<p>(.*?)</p>", points)]
    assert 1 <= len(sentences) <= 3
    assert max(len(sentence.split()) for sentence in sentences) <= 45
