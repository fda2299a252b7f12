"""Whatever stands behind the # of a page's address: the page shows what it has, and asks for nothing."""

import random
from urllib.parse import quote

from hostile_files import NUMBERS, TEXTS

ADDRESSES = 150


def addresses(rng, known, count):
    """So many ends of an address: with an epsilon that the page has, or with anything."""
    for _ in range(count):
        name = rng.choice(("epsilon", "epsilon", "epsilon", "Epsilon", "e", "", "__proto__", "constructor", "moved"))
        value = str(rng.choice((*TEXTS, *NUMBERS, *known)))
        value = rng.choice(
            (value, quote(value), value * 50, f"{value}&{name}={value}", f"%{value}", f"{value}#{value}")
        )
        yield rng.choice((f"#{name}={value}", f"#{value}", f"#?{name}={value}", f"#{name}", "#", ""))


# Of each address: the place of the slider, what is marked as moved, and the whole text that is shown.
SHOWN = """async ends => {
  const found = [];
  for (const end of ends) {
    history.replaceState(null, "", location.pathname + end);
    dispatchEvent(new HashChangeEvent("hashchange"));
    const shown = document.querySelectorAll("#answer, #epsilon-shown");
    const text = [...shown].map(element => element.textContent).join("|");
    found.push([document.getElementById("epsilon").value, document.title, text]);
  }
  return found;
}"""


def test_no_address_shows_anything_but_what_the_page_has_or_asks_for_anything(open_page, saved_report):
    with open_page(saved_report[1], 1400) as visit:
        moving = visit.page.evaluate("JSON.parse(document.getElementById('moving').textContent)")
        known, title = moving["epsilons"], visit.page.title()
        # What each place of the slider shows.
        there = visit.page.evaluate(SHOWN, [f"#epsilon={epsilon}" for epsilon in known])
        assert [int(place) for place, _, _ in there] == list(range(len(known)))
        texts = {text for _, _, text in there}
        ends = list(addresses(random.Random(0), known, ADDRESSES))
        for end, (place, now, text) in zip(ends, visit.page.evaluate(SHOWN, ends), strict=True):
            assert (text in texts, now, 0 <= int(place) < len(known)) == (True, title, True), end
        assert visit.errors == []
        assert len(visit.requests) == 1
