"""The headings of a page say what its own tables say, in every kind of study."""

import io
import json
import math
import re
from functools import partial

import pandas as pd
import pytest
from report_pages import make_report, readable
from small_studies import STUDY

from policies.catalogue import CATALOGUE
from policysim.question import formats, words

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
        patch.setattr("policysim.output.deliver.FigureFiles.of", _blank)
        return make_report(tmp_path_factory.mktemp("headings"), STUDIES[request.param], prices=True)


def _blank(_files, _drawing, *, narrow):
    del narrow
    from policysim.output.deliver import Vector  # noqa: PLC0415

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
    elif len(names) == 2 and len(better) != 1:
        assert ("both mechanisms" if better else "neither of the two mechanisms") in said
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
    if "No group" in said:
        assert groups["loss"].max() < 1.05 * rows["loss"].iloc[0]
    else:
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
    for verb, fewer, name, change in (
        ("gains", "fewer", gained.idxmax(), gained.max()),
        ("loses", "more", gained.idxmin(), -gained.min()),
    ):
        words_for = f"{fewer} deaths" if name == "death" else f"{fewer} cases of “{name}”"
        if name not in made.study.scenario.outcomes:
            words_for = {"fewer": "lower", "more": "higher"}[fewer] + " costs of treatments"
        assert (f"{verb} most from {words_for}" in said) == (change > 1e-12)


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
    assert said.startswith(f"At ε = {formats.plain(made.study.epsilon)}, {row['policy']} ")


def test_the_dearest_feature_is_first_in_the_price_list(made):
    rows = table(made, "prices.csv")
    single = rows[rows["used"] & (rows["hides"] != "whole record")]
    said = heading(made, "prices")
    if single["loss"].max() > 1e-12:
        assert f"“{single['hides'].iloc[0].replace('_', ' ')}”" in said
        assert formats.percent_1(1 - single["benefit_kept"].iloc[0]).replace("\u00a0", " ") in said
    else:
        assert "costs nothing" in said


def test_what_stays_the_best_in_the_redraws_is_counted_there(made):
    rows, said = table(made, "findings.csv").set_index("quantity"), heading(made, "model")
    if "redraws_with_this_first" not in rows.index or not private(made):
        assert "redraws" not in said or "redraws_with_this_first" in rows.index
        return
    first = rows.loc["redraws_with_this_first"]
    assert said.startswith(f"{first['subject']} is first in {first['value']:g} of {rows['value']['redraws']:g} redraws")
    kept = rows.loc[["benefit_kept_at_prevalence"]] if "benefit_kept_at_prevalence" in rows.index else rows[:0]
    worse = [
        row["subject"].rpartition(" × ")[2]
        for row in kept.to_dict("records")
        if row["subject"].startswith(f"{first['subject']} × ") and row["value"] < -1e-12
    ]
    times = re.search(r"worse than one for all at (.*) times the assumed prevalence", said)
    assert (re.findall(r"[^\s,]+", times[1].replace(" and ", " ")) if times else []) == worse


def test_what_no_mechanism_exceeds_is_said_only_where_it_is_proven(made):
    most = now(made)["most_kept"].min()
    said = heading(made, "limit")
    assert bool(said) == (not math.isnan(most) and most <= 0.99)
    if said:
        assert formats.percent_1_up(most).replace("\u00a0", " ") in said


def test_the_brief_has_the_title_of_the_manifest_and_numbers_beside_one_for_all(made):
    page, rows = made.page, now(made)
    finding = json.loads(made.files["manifest.json"])["headline"]["finding"]
    assert readable(re.search(r"<h1>(.*?)</h1>", page)[1]) == readable(finding)
    strip = page.partition('<dl class="strip">')[2].partition("</dl>")[0]
    tiles = re.findall(r'data-show="(\w+)" data-value="([^"]*)">.*?one for all: <b>(.*?)</b>', strip)
    assert [name for name, _, _ in tiles] == ["extra_deaths", "guess_rate", "benefit_kept"]
    first = page.partition("<option selected>")[2].partition("</option>")[0]
    for name, value, _ in tiles:
        assert float(value) == pytest.approx(rows[name][first], rel=1e-5, abs=1e-12)
    assert tiles[0][2] == formats.events(rows["extra_deaths"]["best-fixed"], 100_000, sign=True)


def test_deaths_are_counted_among_the_same_number_of_patients_all_over_the_page(made):
    body = re.sub(r"<svg.*?</svg>|<script.*?</script>", "", made.page, flags=re.DOTALL)
    bases = set(re.findall(r"deaths\s+(?:among them, )?per (\d[\d,]*\d)", readable(body)))
    assert bases == {"100,000"}


# What no sentence has: an undefined number, a sign of 0, one of many, doubled or empty signs.
SLIPS = (
    r"\b(nan|inf|None)\b(?! of the)(?!: no patient)",
    r"−0(?![\d.,])|−0\.0+(?!\d)",
    r"(?<![\d.,])1 (patients|deaths|mechanisms|treatments|records|days|policies|numbers|groups|redraws|times)\b",
    r"“”|\(\)|\.\.|,,|;;| [.,;:](?!\d)|\b(keeps|costs|loses) –",
)


def test_every_sentence_is_defined_and_well_formed(made):
    body = re.sub(r"<svg.*?</svg>|<script.*?</script>", "", made.page.partition("<main>")[2], flags=re.DOTALL)
    told = re.findall(r"<(p|h1|h3|li|dd|figcaption)[^>]*>(.*?)(?=</\1>|<\1)", body, flags=re.DOTALL)
    texts = [readable(text) for _, text in told] + [readable(alt) for alt in re.findall(r'aria-label="(.*?)"', body)]
    assert len(texts) > 40
    assert [text for text in texts for slip in SLIPS if re.search(slip, text)] == []


def test_no_sentence_of_the_brief_is_long(made):
    points = made.page.partition('<div class="points">')[2].partition('<div class="linked">')[0]
    told = [readable(text) for text in re.findall(r"<p>(.*?)</p>", points)]
    assert 1 <= len(told) <= 3
    assert max(len(text.split()) for text in told) <= 50
    assert max(len(sentence.split()) for text in told for sentence in re.split(r"[.;] ", text)) <= 35


def points(report):
    brief = report.page.partition('<div class="points">')[2].partition('<div class="linked">')[0]
    pairs = re.findall(r'<div[^>]*>(?:<p class="kicker">(.*?)</p>)?<p>(.*?)</p></div>', brief, flags=re.DOTALL)
    return {lead: readable(sentence) for lead, sentence in pairs}


def shown_first(report):
    return report.page.partition("<option selected>")[2].partition("</option>")[0]


def test_the_fewest_deaths_are_those_of_the_table_against_the_best_treatment_for_each(made):
    said, rows = points(made), now(made)
    if not private(made):
        assert not any("fewest deaths" in lead for lead in said)
        return
    lead = next(lead for lead in said if "fewest deaths" in lead)
    named = {row: rows["extra_deaths"][row] for row in [*private(made), "best-fixed"]}
    least = min([*named.values(), made.findings.safest.extra_deaths])
    against = r"(no|[\d.,]+) (?:more|fewer) deaths per 100,000 than the best treatment for each"
    number = re.search(against, said[lead])[1]
    assert number in ("no", formats.events(abs(least), 100_000))
    assert said[lead].startswith("Give everybody") == ("nothing hidden is revealed" in said[lead])


def test_what_the_most_useful_keeps_and_costs_is_in_the_table_with_its_proof(made):
    said, rows = points(made), now(made)
    if not private(made):
        return
    text = next(text for lead, text in said.items() if re.search("most useful|best mechanism", lead, re.IGNORECASE))
    name, kept = re.search(r"At ε = \S+ (\S+) keeps (\S+\s%) of the benefit", text).groups()
    assert rows["value"][name] == pytest.approx(rows["value"][private(made)].max())
    assert kept == formats.percent_1(rows["benefit_kept"][name]).replace("\u00a0", " ")
    most = rows["most_kept"].min()
    if "(proven: no private choice keeps more)" in text:
        assert rows["benefit_kept"][name] >= most - 1e-6
    elif "(proven" in text:
        assert f"no private choice keeps more than {formats.percent_1_up(most)})".replace("\u00a0", " ") in text
    else:
        assert math.isnan(most) or most > 0.999


def test_a_group_pays_with_nearly_all_deaths_only_where_the_table_says_so(made):
    text = " ".join(points(made).values())
    found = re.search(
        r"(Net, nearly|Net,|More than) all of these are among “(.*?)” patients \((\S+ %) of all\): (\S+) per 100,000",
        text,
    )
    rows = made.table[made.table["epsilon"] == made.study.epsilon]
    if not private(made) or not made.study.by:
        assert not found
        return
    best = rows[(rows["group"] == "all") & rows["policy"].isin(private(made))].sort_values("value").iloc[-1]
    groups = rows[(rows["policy"] == best["policy"]) & (rows["group"] != "all") & (rows["share"] <= 0.5)]
    bearing = groups[groups["share"] * groups["extra_deaths"] >= 0.9 * best["extra_deaths"]]
    if not found or best["extra_deaths"] < 1e-7:
        assert best["extra_deaths"] < 1e-7 or bearing.empty or len(rows) == 0
        return
    group = bearing.loc[bearing["share"].idxmin()]
    assert found[2] == words.level_name(group["group"], group["level"])
    assert found[3] == formats.percent(group["share"]).replace("\u00a0", " ")
    assert found[4] == formats.events(group["extra_deaths"], 100_000, sign=True)
    part = group["share"] * group["extra_deaths"] / best["extra_deaths"]
    assert (found[1] == "Net, nearly") == (part < 1 - 1e-6)
    assert (found[1] == "More than") == (part > 1 + 1e-6)


def test_what_an_observer_learns_is_the_largest_change_of_the_table(made):
    said = points(made).get("What an observer learns")
    if "beliefs.csv" not in made.files:
        assert said is None
        return
    rows = table(made, "beliefs.csv")
    change = pd.concat([rows["most"] - rows["before"], rows["before"] - rows["least"]], axis=1).max(axis=1)
    if change.max() < 1e-6:
        assert "no treatment that is given moves" in said
        return
    row = rows.loc[change.round(9).idxmax()]
    among = f"“{row['among']}” " if "among" in row else ""
    policy, seen, after, _, before = re.search(
        rf"Of 100 {re.escape(among)}patients to whom (.*) gives (.*), ([\d.]+) are “(.*)”; "
        rf"of 100 {'such ' if among else ''}patients overall, ([\d.]+)\. Of what",
        said,
    ).groups()
    assert policy == row["policy"]
    assert seen in (row["most_after"], row["least_after"])
    assert abs(float(after) - float(before)) == pytest.approx(100 * change.max(), abs=1.5)


def test_deaths_stand_side_by_side_in_decimals_that_show_how_far_they_are_apart(made):
    line = re.search(r"<p>Deaths per ([\d,]+) patients: (.*?)</p>", made.page, flags=re.DOTALL)
    shown = {
        name.strip(" ·"): number
        for name, number in re.findall(r"([^\d]*?) ([\d,.]+)(?: ·|$)", readable(line[2]).replace("ε", ""))
    }
    own = made.findings.deaths
    first = shown_first(made)
    names = {"untreated": "untreated", "best for each": "best for each"}
    for label, name in names.items():
        assert float(shown[label].replace(",", "")) == pytest.approx(100_000 * own[name], abs=0.51)
    rates = sorted(100_000 * rate for rate in own.values())
    printed = sorted(float(number.replace(",", "")) for label, number in shown.items() if label != first)
    for one, other, a, b in zip(rates, rates[1:], printed, printed[1:], strict=False):
        assert other - one < 0.01 or abs((b - a) - (other - one)) <= (other - one) / 2 + 1e-9
    mine = now(made)["extra_deaths"][first] + own["one for all"]
    assert float(shown[first].replace(",", "")) == pytest.approx(100_000 * mine, abs=0.51)


def test_the_epsilons_that_keep_enough_stand_with_what_they_let_guess(made):
    section = made.page.partition('<hgroup id="policies">')[2].partition("<table")[0]
    found = re.search(r"<p>(Keeping .*?|No ε lets .*?)</p>", section, flags=re.DOTALL)
    if not private(made):
        assert not found
        return
    guessed = re.findall(r"up to ([\d.]+) can be right at ε = ([\d.,]+\d|0)", readable(found[1]))
    assert bool(guessed) == readable(found[1]).startswith("Keeping")
    for right, epsilon in guessed:
        exact = 100 / (1 + math.exp(-float(epsilon.replace(",", ""))))
        assert exact - 1e-9 <= float(right) <= exact + 0.1001


def test_below_the_epsilon_that_is_said_the_optimum_is_worth_one_for_all(made):
    said = re.search(
        r"Up to ε = (\S+) optimal is worth no more than giving everybody .*?; from ε = (\S+) on", readable(made.page)
    )
    everyone = made.table[made.table["group"] == "all"]
    if "optimal" not in private(made):
        assert not said
    elif said:
        assert float(said[1]) == formats.next_below(float(said[2]))
        rows = everyone[everyone["epsilon"] <= float(said[1])].set_index(["policy", "epsilon"])["value"]
        assert rows["optimal"].to_numpy() == pytest.approx(rows["best-fixed"].to_numpy(), rel=1e-9)


def test_each_cell_has_the_number_of_the_comparison_and_its_range_in_the_redraws(made):
    part = made.page.partition('<hgroup id="model">')[2].partition("Benefit and harms are measured")[0]
    if "In each cell" not in part:
        assert not private(made)
        return
    columns = [readable(text) for text in re.findall(r'<th scope="col">([^<]*)', part)]
    rows, robustness = now(made), made.findings.robustness
    deaths, gain = partial(formats.events, count=100_000, sign=True), rows["value"] - rows["value"]["best-fixed"]
    write = {
        "benefit kept": ("benefit_kept", formats.percent, rows["benefit_kept"]),
        "extra deaths per 100,000": ("extra_deaths", deaths, rows["extra_deaths"]),
        "utility per patient beyond one for all": ("benefit", formats.rounded, gain),
    }
    names = re.findall(r'<tr data-row="([^"]+)"[^>]*><th scope="row">[^<]*((?:<td>[^<]*<small>[^<]*</small>)+)', part)
    assert [name for name, _ in names] == list(robustness.ranking)
    for name, cells in names:
        found = re.findall(r"<td>([^<]*)<small>([^<]*)</small>", cells)
        for column, (stated, redrawn) in zip(columns[1:], found, strict=True):
            outcome, written, numbers = write[column]
            own = next(each for each in robustness.ranges if (each.policy, each.outcome) == (name, outcome))
            assert stated == written(numbers[name])
            assert redrawn == f"{written(own.low)} to {written(own.high)}"


def test_below_the_title_stand_what_the_benefit_is_and_the_largest_and_the_smallest_weight(made):
    said = readable(made.page)
    assert "Utility weighs “death” 10, “infected” 0.1." in said
    assert "0 % = one for all, 100 % = best for each." in said
