"""The slider: whatever ε and policy are chosen, and however, the page shows their row of comparison.csv."""

import json
import math
import re
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

from policies.catalogue import CATALOGUE
from policysim.question.formats import plain
from policysim.question.words import policy_odds

COVID = Path(__file__).parents[2] / "reports" / "covid" / "report.html"
CONTROL = 'id="epsilon"'
PAGES = COVID.parents[1].glob("*/report.html")
WITH_SLIDER = sorted({COVID} | {page for page in PAGES if CONTROL in page.read_text(encoding="utf-8")})
# How often the text counts what the table has once: per cent, of 1,000.
COUNTED = {
    "epsilon": (1,),
    "loss": (1,),
    "extra_deaths": (100_000, 1_000_000, 10_000_000),
    "deaths": (100_000, 1_000_000, 10_000_000),
    "benefit_kept": (100,),
    "guess_rate": (100,),
}
# What the page of a log shows in their place, each with the ends of its interval.
ESTIMATED = ("value", "difference")


@pytest.fixture(scope="module", params=WITH_SLIDER, ids=lambda path: path.parent.name)
def path(request):
    return request.param


@pytest.fixture(scope="module")
def rows(path):
    table = pd.read_csv(path.with_name("comparison.csv"))
    return table[(table["group"] == "all") & (table["level"] == "all")].set_index(["policy", "epsilon"]).sort_index()


@pytest.fixture(scope="module")
def epsilons(rows):
    return sorted(rows.index.unique("epsilon"))


@pytest.fixture(scope="module")
def manifest(path):
    return json.loads(path.with_name("manifest.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def opened(open_page, path):
    """A page with a slider, opened once, and the choices that it opens with."""
    with open_page(path, 1400) as visit:
        assert visit.page.locator("#epsilon").count() == 1, "the page has no slider"
        yield visit, visit.page.evaluate("[document.getElementById('policy').value, +epsilon.value]")


@pytest.fixture
def slider(opened):
    """The page with a slider as it opens: the policy and the ε of other tests are taken back, as a reader would."""
    visit, (policy, position) = opened
    visit.resize(1400)
    visit.page.locator("#policy").select_option(policy)
    visit.page.locator("#epsilon").fill(str(position))
    visit.page.evaluate("document.activeElement.blur()")
    yield visit
    assert visit.errors == []


def numbers(visit):
    return visit.measure("numbers")


def says(text, values):
    """Whether a text states one of the numbers, to two significant digits or to the decimals that it shows."""
    for sign, digits in re.findall(r"([−-]?)(\d[\d,]*(?:\.\d+)?(?:e[−+-]?\d+)?)", text):
        stated = float(digits.replace(",", "").replace("−", "-")) * (-1 if sign else 1)
        decimals = len(digits.partition("e")[0].partition(".")[2])
        if any(abs(stated - value) <= max(0.05 * abs(value), 0.5 * 10.0**-decimals) for value in values):
            return True
    return False


def expected(rows, policy, epsilon):
    """What the table says of this policy and ε: by the page's names, what the table knows."""
    row = rows.loc[(policy, epsilon)].copy()
    if not rows.get("expected_deaths", pd.Series([0.0])).any():
        row["extra_deaths"] = math.nan
    right = 1 / (1 + math.exp(-row["guarantee"]))
    if "difference_low" in row:
        return {"epsilon": epsilon, "odds": right, **{name: row[name] for name in (*ESTIMATED, "guess_rate")}}
    if not math.isnan(row.get("extra_deaths", math.nan)):
        row["deaths"] = row["expected_deaths"]
    known = {name: row[name] for name in COUNTED if name in row and not math.isnan(row[name])}
    return {"epsilon": epsilon, "odds": right, **known}


def assert_shows(shown, rows, policy, epsilon):
    """All of what the page shows is the row of this policy and ε."""
    values = expected(rows, policy, epsilon)
    assert {name for name in shown["places"] if not name.startswith(("p:", "g:"))} == set(values)
    for name, value in values.items():
        for place in shown["places"][name]:
            # Six significant digits are off by 5e-6 at most, tenths of 100 by 1e-3; less than 1e-9 is what rounding
            # leaves of 0.
            nearly = {"odds": 1e-3, "guess_rate": 1e-6}.get(name, 1e-9)
            assert place["value"] == pytest.approx(value, rel=5.001e-6, abs=nearly), name
            if name in COUNTED and place["text"] != "≈ 0":
                stated = [value * times for times in COUNTED[name]]
                assert says(place["text"], stated), f"{name} = {value}: {place}"
            if name in ESTIMATED:
                row = rows.loc[(policy, epsilon)]
                for end in (value, row[f"{name}_low"], row[f"{name}_high"]):
                    assert says(place["text"], [end]), f"{name} = {value}: {place}"
    # Each policy by its own guarantee: one that takes no ε promises nothing that follows ε.
    guarantee = rows.loc[(policy, epsilon), "guarantee"]
    said = policy_odds(policy, epsilon, guarantee, uses_epsilon=CATALOGUE[policy].uses_epsilon)
    assert all(place["text"] == said for place in shown["places"]["odds"])
    for name, (place, *_) in shown["places"].items():
        if name.startswith("p:"):
            assert says(place["text"], [place["value"] * (100 if "%" in place["text"] else 1)]), f"{name}: {place}"
    assert shown["policy"] == policy
    assert shown["shown"] == plain(epsilon)
    assert shown["said"] == f"ε = {plain(epsilon)}"


def patients(shown):
    """The probabilities of the actions, for each example patient."""
    found = {}
    for name, (place, *_) in shown["places"].items():
        if name.startswith("p:"):
            _, patient, action = name.split(":", 2)
            found.setdefault(patient, {})[action] = place["value"]
    return found


def policies(visit):
    return visit.page.evaluate("[...document.getElementById('policy').options].map(option => option.value)")


def choices(visit, epsilons):
    """Each policy of the list at the first, the middle and the last ε: policy, ε and what the page then shows."""
    middle = len(epsilons) // 2
    right = [("ArrowRight", place) for place in range(1, middle + 1)]
    for keys in ([("Home", 0)], right, [("End", len(epsilons) - 1)]):
        for key, place in keys:
            visit.press(key, place)
        epsilon = epsilons[int(visit.page.locator("#epsilon").input_value())]
        for policy in policies(visit):
            visit.page.locator("#policy").select_option(policy)
            yield policy, epsilon, numbers(visit)


def test_the_covid_report_has_a_slider():
    assert CONTROL in COVID.read_text(encoding="utf-8")


def test_a_position_of_the_slider_is_a_computed_epsilon(slider, epsilons, manifest):
    control = slider.page.locator("#epsilon")
    assert [control.get_attribute(name) for name in ("type", "min", "max", "step")] == [
        "range",
        "0",
        str(len(epsilons) - 1),
        "1",
    ]
    assert epsilons[numbers(slider)["position"]] == manifest["epsilon"]
    for end in ("more private", "less private"):
        assert slider.page.get_by_text(end, exact=True).first.is_visible()


def test_the_keys_visit_every_epsilon_and_all_numbers_follow(slider, rows, epsilons):
    page = slider.page
    policy = numbers(slider)["policy"]
    for _ in range(100):
        before = page.evaluate_handle("document.activeElement")
        page.keyboard.press("Tab")
        page.wait_for_function("before => document.activeElement !== before", arg=before)
        if page.evaluate("document.activeElement.id") == "epsilon":
            break
    assert page.evaluate("document.activeElement.id") == "epsilon"
    last = len(epsilons) - 1
    right = [("ArrowRight", position) for position in range(1, last + 1)]
    for key, position in [("Home", 0), *right, ("Home", 0), ("End", last), ("ArrowLeft", last - 1)]:
        slider.press(key, position)
        assert numbers(slider)["position"] == position
        assert_shows(numbers(slider), rows, policy, epsilons[position])


@pytest.mark.parametrize("width", [400, 1400])
def test_the_mouse_sets_epsilon_and_all_numbers_follow(slider, rows, epsilons, width):
    page, last = slider.page, len(epsilons) - 1
    slider.resize(width)
    policy = numbers(slider)["policy"]
    control = page.locator("#epsilon")
    control.scroll_into_view_if_needed()
    box = control.bounding_box()

    def on_track(share):
        return box["x"] + share * box["width"], box["y"] + box["height"] / 2

    for share in (0.25, 0.75):
        page.mouse.click(*on_track(share))
        # The handle's width keeps it within the track, which moves the middle of a step by one at most.
        page.wait_for_function("at => Math.abs(document.getElementById('epsilon').value - at) <= 1.5", arg=share * last)
        shown = numbers(slider)
        assert_shows(shown, rows, policy, epsilons[shown["position"]])
    page.evaluate("addEventListener('mousemove', event => { window.pointed = event.clientX; }, true)")
    page.mouse.move(*on_track(0.75))
    page.mouse.down()
    visited = set()
    for share in (0.6, 0.4, 0.2, 0.01):
        page.mouse.move(*on_track(share))
        page.wait_for_function("x => Math.abs(window.pointed - x) <= 1", arg=on_track(share)[0])
        shown = numbers(slider)
        visited.add(shown["position"])
        assert_shows(shown, rows, policy, epsilons[shown["position"]])
    page.mouse.up()
    assert len(visited) == min(4, len(epsilons))
    assert numbers(slider)["position"] == 0


def test_every_policy_has_its_own_numbers(slider, rows, epsilons):
    seen = set()
    for policy, epsilon, shown in choices(slider, epsilons):
        assert_shows(shown, rows, policy, epsilon)
        if epsilon == epsilons[-1]:
            seen.add(json.dumps(shown["places"]))
    assert len(seen) > 1


def test_markers_stand_at_epsilon_on_the_axis_of_every_figure(slider, epsilons):
    stands, ticks = [], []
    slider.press("Home", 0)
    for position, epsilon in enumerate(epsilons):
        if position:
            slider.press("ArrowRight", position)
        if epsilon == 0:  # for which a log axis has no place
            continue
        found = slider.measure("markers")
        assert found["unmarked"] == []
        for marker in found["markers"]:
            assert marker["name"] == "line"
            assert marker["width"] == pytest.approx(0, abs=0.01)
            assert marker["height"] > 10
            assert marker["frame"] is not None, f"a marker is outside the axes at ε = {epsilon:g}"
            # The tick with this label is an independent witness of where ε is, to half a pixel.
            there = [tick["x"] for tick in marker["ticks"] if tick["value"] == epsilon]
            assert there == pytest.approx([marker["x"]] * len(there), abs=0.5)
            ticks += there
        stands.append([marker["x"] for marker in found["markers"]])
    assert stands[0]
    assert ticks
    for before, after in pairwise(stands):
        assert all(left < right for left, right in zip(before, after, strict=True))


def test_the_probabilities_of_each_example_patient_sum_to_one(slider, rows, epsilons):
    actions = sum(column.startswith("p_") for column in rows)
    seen = set()
    for _, _, shown in choices(slider, epsilons):
        found = patients(shown)
        for probabilities in found.values():
            assert len(probabilities) == actions
            assert min(probabilities.values()) >= 0
            # Each is rounded to whole per cent.
            assert sum(probabilities.values()) == pytest.approx(1, abs=actions * 0.005 + 1e-9)
        seen.add(json.dumps(found))
    assert len(seen) > 1


def test_example_patients_are_as_hard_to_tell_apart_as_their_policy_promises(slider, rows, epsilons, manifest):
    """Any two records are neighbours where the whole record is hidden, so no treatment may tell two of them apart."""
    if manifest["question"]["adjacency"] != "any-record":
        pytest.skip("example patients need not be neighbours")
    for policy, epsilon, shown in choices(slider, epsilons):
        spent = rows.loc[(policy, epsilon), "epsilon_spent"]
        found = patients(shown).values()
        for probabilities in zip(*(patient.values() for patient in found), strict=True):
            if spent < math.inf:
                # Whole per cent are off by half of one.
                assert max(probabilities) - 0.0051 <= math.exp(spent) * (min(probabilities) + 0.0051)


def test_without_a_script_the_page_shows_the_same_as_static_text(open_page, path, manifest):
    with open_page(path, 1400) as visit:
        opens_with = numbers(visit)["places"]
    with open_page(path, 1400, script=False) as visit:
        static = numbers(visit)
        assert not visit.page.locator("#epsilon").is_visible()
        assert not visit.page.locator("#policy").is_visible()
    assert static["places"] == opens_with
    assert static["places"]["epsilon"][0]["value"] == manifest["epsilon"]
