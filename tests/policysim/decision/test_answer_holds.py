"""Every labelled line of random studies is true of the problem's own tables, by formulas that share no code."""

import itertools
import math
import re

import numpy as np
import pytest
from printed_numbers import texts_of, unknown_numbers
from random_studies import case

from policies import AnyRecord, OneFeature
from policysim.report.findings import BETTER, EQUAL, NOT_SHOWN, UTILITY, WORSE
from policysim.study.labels import level_in_words

# The first 500 hold, too; they take 100 seconds of one core.
STUDIES, CHUNKS = 200, 10
# Numbers that differ by less are the same.
SAME = 1e-9
CHANGE = re.compile(r"(≈ 0|[\d,.]+(?:e−\d+)?) (more|fewer) ((?:[^;,.\d]|, (?![\d≈]))+?)(?=,| and [\d≈]|;|\.|$)")


class Truth:
    """What one case says, beside numbers that are computed here."""

    def __init__(self, case, epsilon):
        self.case, self.epsilon, self.problem = case, epsilon, case.problem
        self.findings, self.screen = case.found[epsilon]
        self.details, self.labels = self.findings.details, case.labels
        self.lines = {line.label.split(" up to")[0]: line for line in self.screen.lines}
        table = self.findings.options
        now = table[table["section"].eq("option") & table["epsilon"].eq(epsilon)].set_index("option")
        self.given = {
            letter: case.evidence.policy(policy, epsilon).probabilities(self.problem)
            for letter, policy in now["policy"].items()
        }
        self.now, self.lead = now, self.labels.lead
        self.weights = {} if case.study is None else {"costs": 1.0, **case.study.weights}
        # Of a version: the utilities, and what one of the lead adds to them.
        study = case.study
        redraws = study.cohort.redrawn() if study is not None and study.cohort.redraws is not None else ()
        self.versions = [cohort.problem(study.utility, self.problem.adjacency) for cohort in redraws]
        if epsilon != case.epsilon:
            self.versions = []

    def mean(self, table, letter, problem=None):
        """The mean of a table, (n, k), under an option."""
        prior = (problem or self.problem).prior
        return float(prior @ (self.given[letter] * table).sum(axis=1))

    def counts(self, outcome, letter):
        return self.mean(self.problem.outcomes[outcome], letter) * self.details.patients

    def value(self, letter):
        return self.mean(self.problem.utilities, letter)

    @property
    def rounding(self):
        return SAME * (1 + np.abs(self.problem.utilities).max())

    def gained(self, weight=None):
        """By how much utility B is better than A in each version, where one of the lead weighs so much."""
        made = []
        for problem in self.versions or [self.problem]:
            gain = self.mean(problem.utilities, "B", problem) - self.mean(problem.utilities, "A", problem)
            if weight is not None:
                deaths = problem.outcomes[self.lead]
                more = self.mean(deaths, "B", problem) - self.mean(deaths, "A", problem)
                gain -= (weight - self.weights[self.lead]) * more
            made.append(gain)
        return np.array(made)

    def verdict(self, weight=None):
        gained = self.gained(weight)
        better, equal = np.mean(gained > self.rounding), np.mean(np.abs(gained) <= self.rounding)
        if equal >= 0.9:
            return EQUAL
        return BETTER if better >= 0.9 else WORSE if better + equal <= 0.1 else NOT_SHOWN

    @property
    def classes(self):
        """The records that agree in all that is public: a list of arrays of records."""
        adjacency, n_records = self.problem.adjacency, self.problem.n_records
        if isinstance(adjacency, AnyRecord | OneFeature):
            return [np.arange(n_records)]
        public = [axis for axis in range(len(adjacency.shape)) if axis not in adjacency.axes]
        codes = np.array(list(itertools.product(*map(range, adjacency.shape))))[:, public]
        return [np.flatnonzero((codes == key).all(axis=1)) for key in np.unique(codes, axis=0)]

    def constant(self, letter):
        """Whether an option gives the same to all of a public class."""
        given = self.given[letter]
        return all(np.allclose(given[records], given[records[:1]], rtol=SAME, atol=0.0) for records in self.classes)

    def groups(self):
        """How much more of the lead, or less utility, patients of each group have by B than by A: name to three."""
        table = -self.problem.utilities if self.lead is None else self.problem.outcomes[self.lead]
        more = ((self.given["B"] - self.given["A"]) * table).sum(axis=1)
        records, prior, by = self.problem.records, self.problem.prior, self.case.study.by
        members = {}
        for name in by:
            codes, titles = records.groups(name)
            for place, title in enumerate(titles):
                members[name, str(title)] = np.asarray(codes) == place
        pairs = {(one,): mask for one, mask in members.items()}
        for one, other in itertools.combinations(members, 2):
            if one[0] != other[0]:
                pairs[one, other] = members[one] & members[other]
        return {
            ", ".join(level_in_words(records, *part) for part in key): (
                len(key),
                prior[mask].sum(),
                prior[mask] @ more[mask] / prior[mask].sum(),
            )
            for key, mask in pairs.items()
            if prior[mask].sum() > 0
        }


def number(text):
    return 0.0 if text.startswith("≈") else math.inf if text == "∞" else float(text.replace(",", "").replace("−", "-"))


def close(printed, exact, digits=2, last=0.005):
    """Whether a printed number is the exact one to so many digits, but for what the `last` decimals were rounded by."""
    exact = abs(exact)
    digits = digits if exact >= 10 else 2
    unit = 10.0 ** (math.floor(math.log10(exact)) - digits + 1) if exact > 0 else 0.0
    return abs(printed - exact) <= 0.505 * (max(unit, 1.0) if exact >= 10 and digits > 2 else unit) + last


def changes_hold(truth, text, option, than):
    """The named changes have sign and size, and all that makes a tenth of gain or loss is named, and what leads."""
    assert f"({option} instead of {than})" in text
    titles = {
        title: name
        for name, title in [("costs", "units of cost"), *truth.labels.outcomes.items()]
        if name != "costs" or title == "units of cost"
    }
    rows, named = truth.details.table.set_index("outcome")["decimals"], set()
    for size, more, title in CHANGE.findall(re.split(r"per [\d,]+(?: patients)?: ", text)[1]):
        outcome = titles[title.strip()]
        exact = truth.counts(outcome, option) - truth.counts(outcome, than)
        assert (exact > 0) == (more == "more"), (text, exact)
        # Printed numbers were subtracted, of which each was rounded.
        last = 10.0 ** -rows.get(outcome, 0)
        assert close(number(size), exact, 3, last) or abs(exact) < last, (text, title, exact)
        named.add(outcome)
    moved = {name: truth.counts(name, option) - truth.counts(name, than) for name in truth.case.evidence.outcomes}
    worth = {name: change * truth.weights.get(name, 0.0 if truth.weights else 1.0) for name, change in moved.items()}
    for sign in (1, -1):
        whole = sum(max(sign * value, 0) for value in worth.values())
        large = [name for name, value in worth.items() if sign * value > 0.101 * whole > 0]
        largest = max(map(abs, worth.values()))
        assert {name for name in large if abs(worth[name]) > 0.02 * largest and abs(moved[name]) > 0.2} <= named, text
    if truth.lead and abs(moved[truth.lead]) > 2e-6 * truth.details.patients:
        assert truth.lead in named, text


def options_hold(truth):
    """A has the least of the lead of all that give everyone of a class the same; C is the best for each."""
    problem, allowed = truth.problem, truth.problem.admissible
    allowed = np.ones_like(problem.utilities, dtype=bool) if allowed is None else allowed
    measure = -problem.utilities if truth.lead is None else problem.outcomes[truth.lead]
    least = 0.0
    for records in truth.classes:
        sums = np.where(allowed[records].all(axis=0), problem.prior[records] @ measure[records], np.inf)
        least += sums.min()
    assert truth.constant("A")
    assert truth.mean(measure, "A") == pytest.approx(least, rel=1e-9, abs=1e-12)
    best = problem.prior @ np.where(allowed, problem.utilities, -np.inf).max(axis=1)
    assert truth.value("C") == pytest.approx(best, rel=1e-9, abs=1e-12)
    for letter, row in truth.now.iterrows():
        assert row["value"] == pytest.approx(truth.value(letter), rel=1e-9, abs=1e-12)
        assert (row["hides"] == "everything") == truth.constant(letter)
    introduced = {option.letter: option for option in truth.screen.options}
    for letter, option in introduced.items():
        assert ("hides everything" in option.hides) == truth.constant(letter), option
    if "the same as A" in introduced["B"].hides:
        assert np.abs(truth.given["A"] - truth.given["B"]).max() < SAME


def hiding_holds(truth):
    text = truth.lines["Hiding everything"].text
    option = truth.details.hiding[0]
    lost = truth.value("C") - truth.value(option)
    assert truth.constant(option)
    if "costs nothing" in text:
        assert lost <= truth.rounding * 10, text
    elif "units of utility" in text:
        assert close(
            number(re.search(r"([\d.,≈e−]+(?: 0)?) units of utility", text)[1]), lost * truth.details.patients, 2
        )
    else:
        changes_hold(truth, text, option, "C")


def leaking_holds(truth):
    line = truth.lines.get("Leaking") or truth.lines.get("A or B?")
    if line is None:
        assert np.abs(truth.given["A"] - truth.given["B"]).max() < 1e-6 or truth.constant("B")
        return
    assert (line.label == "A or B?") == truth.constant("B")
    if "units of utility" not in line.text and "buys" in line.text.lower() and not line.text.endswith(": nothing."):
        changes_hold(truth, line.text, "B", "A")


def worth_holds(truth):
    line = truth.lines.get("Is that worth it?")
    if line is None:
        assert truth.verdict() == EQUAL
        return
    if not line.rows:
        verdict_holds(truth, line.text)
        return
    (stated, verdict), *zones = line.rows
    unit = next(name for name in truth.weights if name != truth.lead and title_of(truth, name) == truth.details.unit)
    assert f"How many {truth.details.unit} count as much as {truth.labels.one_of_lead}?" in line.text
    assert close(number(stated.split()[0]), truth.weights[truth.lead] / truth.weights[unit])
    verdict_holds(truth, verdict)
    end = 0.0
    for where, words in zones:
        low, high = ends_of(where)
        assert low == end
        end = high
        expected = (
            BETTER if words.startswith("B is better") else WORSE if words.startswith("A is better") else NOT_SHOWN
        )
        # Rounded towards caution where a zone is unsure, else to the nearest.
        unsure = any("cannot show" in words for _, words in zones)
        for weight in inside(low, high, exactly=expected != NOT_SHOWN and unsure):
            assert truth.verdict(weight * truth.weights[unit]) == expected, (line, weight)
    assert end == math.inf


def title_of(truth, outcome):
    return "units of cost" if outcome == "costs" else truth.labels.outcomes[outcome]


def ends_of(where):
    if where.startswith("up to "):
        return 0.0, number(where.removeprefix("up to "))
    if where.startswith("from "):
        return number(where.removeprefix("from ")), math.inf
    return tuple(map(number, where.split(" to ")))


def inside(low, high, exactly):
    """Weights within a zone; ends of what is sure are rounded towards caution, those of other zones are not."""
    near = 1e-6 if exactly else 0.12
    low, high = low * (1 + near) + 1e-9, min(high, 50 * low + 1e4) * (1 - near)
    return np.linspace(low, high, 7) if low < high else ()


def verdict_holds(truth, words):
    gained, verdict = truth.gained(), truth.verdict()
    better = int((gained > truth.rounding).sum())
    words = re.sub(r"^Under .*? (?=B|the model|A is)", "", words)
    assert words.lower().startswith(
        {
            BETTER: "b is better than a",
            WORSE: ("a is better: b beats it only", "b is worse than a"),
            EQUAL: "b and a are worth the same",
            NOT_SHOWN: "the model cannot show it",
        }[verdict]
    ), (words, verdict)
    if counts := re.search(r"in (\d+) of (\d+) versions", words):
        assert (int(counts[1]), int(counts[2])) == (better, len(truth.versions)), words
    else:
        assert not truth.versions or verdict == EQUAL


def harmed_holds(truth):
    text = truth.lines["Who is harmed"].text
    if text.startswith("At ε = "):
        # Checked there.
        assert truth.epsilon != truth.case.epsilon
        return
    if truth.case.study is None or not truth.case.study.by:
        assert text.startswith("Not known")
        return
    groups = truth.groups()
    if text.startswith("No group"):
        assert max(value for _, _, value in groups.values()) <= 1.1e-6
        return
    found = re.findall(r"“([^”]+)” \(([\d.]+)\s%[^)]*\)(?: has|:) ([\d.,]*\d)", text)
    for name, share, size in found:
        _, exact, value = groups[name]
        assert close(number(share), 100 * exact), text
        assert close(number(size), value * truth.details.patients, 3), text
    single = {name: value for name, (features, _, value) in groups.items() if features == 1}
    assert single.get(found[0][0], 0.0) >= max(single.values()) - SAME or max(single.values()) <= 2e-6
    most = max(value for _, _, value in groups.values()) * truth.details.patients
    assert close(number(found[-1][2]), most, 3), text


def leaks_hold(truth):
    text = truth.lines["What leaks"].text
    assert text.startswith("Nothing") == truth.constant("B"), text
    if moved := re.search(
        r"belief “(.+?)”(?: among “(.+?)”)? moves from ([\d.]+) % to (?:between )?([\d.]+)(?: (?:to|and) ([\d.]+))? %",
        text,
    ):
        printed = [float(each) for each in moved.groups()[2:] if each]
        decimals = 10.0 ** -len(moved[3].partition(".")[2])
        printed += printed[-1:] * (3 - len(printed))
        assert any(
            max(abs(one - other) for one, other in zip(printed, exact, strict=True)) <= 0.51 * decimals
            for exact in beliefs(truth)
        ), text
    elif apart := re.search(r"distinguishes two patients ([\d.]+) times", text):
        assert abs(float(apart[1]) - 100 * guess_rate(truth)) <= 0.051


def beliefs(truth):
    """Before, least and most after a treatment of B, in per cent, of each hidden feature and level in each class."""
    records = truth.problem.records
    for members in truth.classes:
        prior = np.zeros(truth.problem.n_records)
        prior[members] = truth.problem.prior[members]
        for name in truth.labels.hidden_features:
            codes, titles = records.groups(name)
            for place in range(len(titles)):
                leveled = np.where(np.asarray(codes) == place, prior, 0.0)
                both, every = leveled @ truth.given["B"], prior @ truth.given["B"]
                if prior.sum() > 0:
                    after = both[every > 1e-12] / every[every > 1e-12]
                    yield 100 * leveled.sum() / prior.sum(), 100 * after.min(), 100 * after.max()


def guess_rate(truth):
    """The most that a guess between two neighbours is right, by the definition."""
    from random_problems import neighbour_pairs  # noqa: PLC0415

    given = truth.given["B"]
    pairs = neighbour_pairs(truth.problem.adjacency, truth.problem.n_records)
    return max(0.5 + np.abs(given[x] - given[y]).sum() / 4 for x, y in pairs)


def advice_holds(truth):
    text, verdict = truth.screen.advice, truth.verdict()
    if text.startswith("Observers see a published list alone"):
        assert truth.case.study.seen == "publication"
        assert truth.value("C") > truth.value("A")
    elif clauses := re.findall(
        r"([AB]) (?:\([^)]*\) )?if \w+(?: \w+){,4}? counts for (more than|less than|[\d.,]+ to) ([\d.,]*\d)", text
    ):
        unit = next(
            name for name in truth.weights if name != truth.lead and title_of(truth, name) == truth.details.unit
        )
        for letter, side, end in clauses:
            near = 1e-6 if "does not decide" in text else 0.06
            factors = {"more than": (1 + near, 2, 50), "less than": (1 - near, 0.5, 1e-3)}.get(side, ())
            for factor in factors:
                weight = number(end) * factor * truth.weights[unit]
                assert truth.verdict(weight) == (WORSE if letter == "A" else BETTER), (text, factor)
        assert ("does not decide" in text) == (NOT_SHOWN in set(truth.details.zones["verdict"]))
    else:
        assert text.startswith("Choose B") == (verdict == BETTER), (text, verdict)


def columns_add_up(truth):
    """Weights times printed differences, and the rest, are the printed difference in utility; cells subtract."""
    rows = truth.details.table.set_index("outcome")
    for option, than in (truth.details.hiding, truth.details.leaking):
        pair = f"{option} − {than}"
        for outcome, row in rows.iterrows():
            if outcome != "all else":
                assert row[pair] == pytest.approx(row[option] - row[than], abs=1e-6), outcome
        if truth.weights:
            weighed = rows[rows["weight"] > 0]
            rest = rows.loc["all else", pair] if "all else" in rows.index else 0.0
            total = (weighed["weight"] * weighed[pair]).sum() + rest
            assert total == pytest.approx(rows.loc[UTILITY, pair], abs=0.51 * 10.0 ** -rows.loc[UTILITY, "decimals"])


def screen_is_clean(truth):
    text = truth.screen.text()
    lines = text.splitlines()
    assert len(lines) <= 45, len(lines)
    assert max(map(len, lines)) <= 100
    full = truth.screen.text(full=True)
    assert not re.search(r"\bnan\b|[−–-]0(?![.\d,])|\bNone\b|  \.|inf\b", full), full
    letters = {option.letter for option in truth.screen.options}
    for line in texts_of(truth.screen):
        assert set(re.findall(r"(?:instead of|than|by|−|and|from) ([A-E])\b", line)) <= letters, line
        assert set(re.findall(r"\b([B-E])\b", line)) <= letters, line
    assert not unknown_numbers(truth.screen, truth.findings, truth.labels)


CHECKS = (
    options_hold,
    hiding_holds,
    leaking_holds,
    worth_holds,
    harmed_holds,
    leaks_hold,
    advice_holds,
    columns_add_up,
    screen_is_clean,
)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_line_is_true(chunk):
    faults = []
    for seed in range(chunk, STUDIES, CHUNKS):
        for epsilon in case(seed).found:
            truth = Truth(case(seed), epsilon)
            for check in CHECKS:
                try:
                    check(truth)
                except AssertionError as error:
                    faults.append((seed, epsilon, check.__name__, str(error)))
    assert faults == []


@pytest.mark.parametrize(
    ("label", "before", "after", "check"),
    [
        ("Who is harmed", "has ", "has 1", harmed_holds),
        ("Leaking", "more", "fewer", leaking_holds),
        ("What leaks", "moves from ", "moves from 1", leaks_hold),
    ],
)
def test_a_planted_fault_is_seen(label, before, after, check):
    """In the first study of those that have such a line."""
    for seed in range(40):
        truth = Truth(case(seed), case(seed).epsilon)
        line = truth.lines.get(label)
        if line is not None and before in line.text and "No group" not in line.text:
            truth.lines[label] = line._replace(text=line.text.replace(before, after))
            with pytest.raises((AssertionError, KeyError)):
                check(truth)
            return
    raise AssertionError(label)
