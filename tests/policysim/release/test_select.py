"""`policysim select`: what it prints, what it keeps apart, what it costs, and what it refuses."""

import json
import math
import re
from fractions import Fraction
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest

from policies.levels import Levels
from policies.selection import MECHANISMS, select
from policies.selection_release import gaps_below_best, places_on_grid, release_weights
from policysim.cli.main import main
from policysim.release.counts_file import Counts, read_counts
from policysim.release.ledger import ADD_OR_REMOVE, REPLACE
from policysim.release.select_private import ADJACENCIES, Terms, choices_by_group, release_document, true_sensitivity

DISEASES = "disease,people\nDiabetes,24\nHepatitis,8\nInfluenza,28\nHIV,5\n"
SOCKS = "\n".join(
    ["sock,behaviour", "Blue,Violent"] + ["Blue,NonViolent"] * 29 + ["Red,Violent"] * 9 + ["Red,NonViolent"] * 61 + [""]
)
MARITAL = "status,people\nMarried,14976\nNever,10683\nDivorced,4443\nSeparated,1025\nWidowed,993\nAbsent,418\nAF,23\n"
TEXTBOOK = ("--mechanism", "exponential")
LINE = "not a release: publish nothing below this line"


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {"diseases.csv": DISEASES, "socks.csv": SOCKS, "marital.csv": MARITAL}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(capsys, *arguments):
    """Exit code, stdout and stderr of `policysim select`; a release is not counted, and says so first."""
    own = [] if "--simulate" in arguments else ["--uncounted"]
    try:
        code = main(["select", *arguments, *own])
    except SystemExit as stop:  # argparse's own way to end
        code = stop.code
    captured = capsys.readouterr()
    lines = captured.err.splitlines(keepends=True)
    if own and captured.out:
        assert ": not counted: no ledger adds" in lines.pop(0)
    return code, captured.out, "".join(lines)


def document(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def analysed(capsys, *arguments):
    """The document with the analysis, which has to be asked for."""
    return document(capsys, *arguments, "--analysis")


def probabilities(document):
    return [
        {row["candidate"]: round(row["probability"], 8) for row in group["candidates"]}
        for group in document["analysis_not_private"]["groups"]
    ]


# What the sources print.


def test_the_command_flips_by_default_and_the_function_weighs(capsys):
    found = analysed(capsys, "diseases.csv", "--score", "people", "--epsilon", "0.1")
    assert found["release"]["mechanism"] == "permute-and-flip"
    counts = {"Diabetes": 24, "HIV": 5, "Hepatitis": 8, "Influenza": 28}
    (row,) = probabilities(found)
    expected = select(list(counts.values()), epsilon=0.1, mechanism="permute-and-flip").probabilities.round(8).tolist()
    assert [row[name] for name in counts] == expected
    assert select(list(counts.values()), epsilon=0.1).mechanism == "exponential"
    # It finds the right one more often.
    by_weight = analysed(capsys, "diseases.csv", "--score", "people", "--epsilon", "0.1", *TEXTBOOK)
    assert row["Influenza"] > probabilities(by_weight)[0]["Influenza"]


def test_the_socks_are_those_of_the_source_with_its_declared_sensitivity(capsys):
    declared = ("--column", "behaviour", "--proportions", "--sensitivity", "1", "--candidates", "Violent,NonViolent")
    declared = (*declared, *TEXTBOOK)
    whole = analysed(capsys, "socks.csv", *declared, "--epsilon", "5.5")
    assert probabilities(whole) == [{"Violent": 0.09975049, "NonViolent": 0.90024951}]
    split = analysed(capsys, "socks.csv", *declared, "--epsilon", "10", "--by", "sock", "--split-by-share")
    assert [choice["epsilon"] for choice in split["release"]["choices"]] == [3, 7]
    assert probabilities(split) == [
        {"Violent": 0.19781611, "NonViolent": 0.80218389},
        {"Violent": 0.06913842, "NonViolent": 0.93086158},
    ]
    # A thirtieth and a seventieth of what the two groups were given.
    assert [choice["privacy_loss"] for choice in split["release"]["choices"]] == pytest.approx([3 / 30, 7 / 70])


def test_proportions_with_their_true_sensitivity_are_counts(capsys):
    options = ("socks.csv", "--column", "behaviour", "--by", "sock", "--candidates", "Violent,NonViolent")
    shares, counts = (analysed(capsys, *options, "--epsilon", "0.3", *more) for more in (["--proportions"], []))
    assert probabilities(shares) == probabilities(counts)
    assert [choice["true_sensitivity"] for choice in shares["release"]["choices"]] == [1 / 30, 1 / 70]
    assert shares["release"]["privacy_loss"] == pytest.approx(0.3)


# What is kept apart.


def test_the_release_stands_alone_unless_the_analysis_is_asked_for(capsys):
    options = ("diseases.csv", "--score", "people", "--epsilon", "200")
    code, alone, err = run(capsys, *options)
    assert (code, err) == (0, "")
    assert alone.splitlines()[0] == "Release (ε = 200, permute-and-flip): disease = Influenza"
    for word in ("Diabetes", "Hepatitis", "HIV", "28", "65", "probability"):
        assert word not in alone
    code, out, err = run(capsys, *options, "--analysis")
    assert (code, err) == (0, "")
    public, private = out.split(LINE)
    assert public.startswith(alone.rstrip("\n"))
    assert "Influenza                                           28       1      1.00000000" in private
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_what_is_released_depends_on_the_counts_through_the_draw_alone(capsys, files, adjacency):
    # All but the candidate that is drawn.
    options = ("--score", "people", "--epsilon", "0", "--adjacency", adjacency)
    (files / "others.csv").write_text(DISEASES.replace("24", "2"), encoding="utf-8")
    first, second = (document(capsys, file, *options)["release"] for file in ("diseases.csv", "others.csv"))
    for released in (first, second):
        assert released["choices"][0].pop("candidate") in ("Diabetes", "Hepatitis", "Influenza", "HIV")
    assert first == second


# The order of what is printed.

LETTERS = ("a", "b")


def outputs(folder, rows, adjacency, *, declared):
    """All that `select --by` can release of these rows, (group, candidate) in the order of its output, and how likely.

    Exactly: by the weights that the release draws with.
    """
    path = folder / "rows.csv"
    path.write_text("ward,name\n" + "".join(f"{ward},{name}\n" for ward, name in rows), encoding="utf-8")
    groups = ("y", "x") if declared else None
    candidates, declared = Levels("name", LETTERS), None if groups is None else Levels("ward", groups)
    counts = read_counts(path, column="name", by="ward", candidates=candidates, groups=declared)
    terms = Terms(2.0, "exponential", adjacency)
    found = choices_by_group(counts, terms)
    laws = []
    for choice in found:
        weights = release_weights(choice.epsilon, monotone=False)
        places = places_on_grid(choice.selection.given, choice.selection.sensitivity)
        mine = [weights.raised(gap) - weights.bias for gap in gaps_below_best(places, weights)]
        laws.append([Fraction(weight, sum(mine)) for weight in mine])
    chosen = {}
    for picks in product(range(len(LETTERS)), repeat=len(found)):
        document = release_document(counts, terms, found, str)
        form = tuple((c["group"], LETTERS[p]) for c, p in zip(document["choices"], picks, strict=True))
        chosen[form] = math.prod(law[p] for law, p in zip(laws, picks, strict=True))
    return chosen


def worst_ratio(one, two):
    """exp of the privacy loss between two laws of an output; infinite where one cannot say what the other can."""
    if set(one) != set(two):
        return math.inf
    return max(max(float(one[form] / two[form]), float(two[form] / one[form])) for form in one)


@pytest.mark.parametrize("declared", [False, True])
def test_who_is_removed_cannot_be_told_from_the_order_of_the_groups(tmp_path, declared):
    people = [("y", "a"), ("x", "b"), ("x", "a"), ("y", "b"), ("y", "b"), ("x", "b")]
    seen = 0
    for order in set(permutations(people[:4])):
        rows = [*order, *people[4:]]
        whole = outputs(tmp_path, rows, "add-or-remove-one", declared=declared)
        for out in range(len(rows)):
            fewer = rows[:out] + rows[out + 1 :]
            ratio = worst_ratio(whole, outputs(tmp_path, fewer, "add-or-remove-one", declared=declared))
            assert ratio <= math.exp(1.0) * (1 + 1e-9)  # counts only rise: the textbook spends half of epsilon = 2
            seen += fewer[0][0] != rows[0][0]
    assert seen > 0  # The group of the first row did change.


def test_declared_groups_may_be_empty_and_no_others_are_there(capsys, files):
    options = ("socks.csv", "--column", "behaviour", "--by", "sock", "--candidates", "Violent,NonViolent")
    options = (*options, "--epsilon", "1", "--adjacency", "add-or-remove-one")
    found = analysed(capsys, *options, "--groups", "Red,Green,Blue")
    assert [choice["group"] for choice in found["release"]["choices"]] == ["Red", "Green", "Blue"]
    assert found["release"]["warnings"] == []
    assert probabilities(found)[1] == {"Violent": 0.5, "NonViolent": 0.5}
    code, out, err = run(capsys, *options, "--groups", "Red,Blues")
    assert (code, out) == (3, "")
    assert err.startswith(
        "policysim: socks.csv:2: row 1: sock: must be one of Red, Blues; a level NA takes missing values\n"
    )
    # Nobody at all is one person fewer than somebody.
    (files / "socks.csv").write_text("sock,behaviour\n", encoding="utf-8")
    found = document(capsys, *options, "--groups", "Red,Blue")
    assert [choice["group"] for choice in found["release"]["choices"]] == ["Red", "Blue"]
    assert run(capsys, *options)[::2] == (3, "policysim: socks.csv: has no rows below its header\n")


def test_a_simulation_is_no_release_and_repeats_itself(capsys):
    options = ("diseases.csv", "--score", "people", "--epsilon", "0.1", "--simulate", "3")
    first = document(capsys, *options)
    assert first["release"] is None
    assert first["simulation"]["seed"] == 3
    assert document(capsys, *options) == first
    out = run(capsys, *options)[1]
    assert out.startswith("Simulation with seed 3, not a release (ε = 0.1, permute-and-flip): disease = ")
    drawn = {document(capsys, *options[:-1], str(n))["simulation"]["choices"][0]["candidate"] for n in range(30)}
    assert drawn == {"Diabetes", "Hepatitis", "Influenza", "HIV"}


def test_a_release_draws_from_the_operating_system(capsys, monkeypatch):
    monkeypatch.setattr("policies.selection.Selection.sample", None)
    monkeypatch.setattr("policies.selection.Selection.release", lambda _: "drawn")
    found = document(capsys, "diseases.csv", "--score", "people", "--epsilon", "0.1")
    assert found["release"]["choices"][0]["candidate"] == "drawn"
    assert found["simulation"] is None


def test_equal_scores_share_the_better_rank(capsys, files):
    (files / "ties.csv").write_text("name,people\na,3\nb,5\nc,5\nd,1\n", encoding="utf-8")
    options = ("ties.csv", "--score", "people", "--epsilon", "0.7")
    group = analysed(capsys, *options)["analysis_not_private"]["groups"][0]
    assert [row["rank"] for row in group["candidates"]] == [3, 1, 1, 4]
    p = [row["probability"] for row in group["candidates"]]
    assert group["probability_right"] == pytest.approx(p[1] + p[2])
    assert group["expected_rank"] == pytest.approx(3 * p[0] + p[1] + p[2] + 4 * p[3])
    assert "one of 2 with the highest score" in run(capsys, *options, "--analysis")[1]


# What it costs.


def neighbours_of_proportions(n, k):
    """Pairs of data sets, n and n + 1 people, that differ in one person."""
    for counts in product(range(n + 1), repeat=k):
        if sum(counts) == n:
            for b in range(k):
                yield np.array(counts), np.array(counts) + np.eye(k, dtype=int)[b]


@pytest.mark.parametrize("proportions", [False, True])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("n", [1, 4])
def test_the_true_sensitivity_is_that_of_all_small_data_sets(n, adjacency, proportions):
    value = spread = 0.0
    sizes = range(1, 6) if adjacency == "add-or-remove-one" else [n]
    for size in sizes:
        for counts, more in neighbours_of_proportions(size, 3):
            others = [more - np.eye(3, dtype=int)[a] for a in range(3) if counts[a]]
            for other in [more] if adjacency == "add-or-remove-one" else others:
                change = other / (other.sum() if proportions else 1) - counts / (size if proportions else 1)
                value, spread = max(value, np.abs(change).max()), max(spread, np.ptp(change))
    found = true_sensitivity(adjacency, proportions, n, 3)
    assert found == pytest.approx((value, spread))


@pytest.mark.parametrize("proportions", [False, True])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_two_small_data_sets_differ_by_more_than_the_loss_that_is_stated(mechanism, adjacency, proportions):
    if mechanism == "exponential-monotone" and (proportions or adjacency == "replace-one"):
        with pytest.raises(ValueError, match="only rise when a person is added"):
            Terms(1.0, mechanism, adjacency, proportions=proportions)
        return
    for declared in (None, 0.3, 4.0):
        terms = Terms(1.0, mechanism, adjacency, declared, proportions)

        def choice(counts, terms=terms):
            people = {"": tuple(int(count) for count in counts)}
            return choices_by_group(Counts("x.csv", "name", ("a", "b", "c"), people, False), terms)[0]

        worst, stated = 0.0, 0.0
        for n in range(1, 5):
            for counts, more in neighbours_of_proportions(n, 3):
                others = [more - np.eye(3, dtype=int)[a] for a in range(3) if counts[a]]
                here = choice(counts)
                stated = max(stated, here.loss)
                for other in [more] if adjacency == "add-or-remove-one" else others:
                    ratio = np.log(here.selection.probabilities) - np.log(choice(other).selection.probabilities)
                    worst = max(worst, float(np.abs(ratio).max()))
                    assert np.abs(ratio).max() <= here.loss + 1e-12
                assert here.holds == (here.loss <= 1 + 1e-9)
        # The statement is not idle: a third of it is reached by these few people already.
        assert worst >= stated / 3


def test_the_loss_of_the_largest_epsilon_is_not_beyond_it():
    counts = Counts("x.csv", "name", ("a", "b"), {"": (1, 2)}, False)
    choice = choices_by_group(counts, Terms(1e308, "permute-and-flip", "replace-one", None, False))[0]
    assert choice.holds and choice.loss == 1e308


@pytest.mark.parametrize("epsilon", ["0.12345649", "1.0000004", "0.3", "2"])
def test_no_loss_is_printed_smaller_than_it_is(capsys, tmp_path, epsilon):
    path = tmp_path / "counts.csv"
    path.write_text("arm,n\na,10\nb,12\n")
    assert main(["select", str(path), "--column", "arm", "--score", "n", "--epsilon", epsilon, "--simulate", "1"]) == 0
    claim, loss, at = re.findall(r"(?:ε =|loss:)\s([0-9.]*[0-9])", capsys.readouterr().out)
    assert all(float(epsilon) <= float(printed) <= float(epsilon) * (1 + 1e-5) for printed in (claim, loss, at))


def test_a_sensitivity_that_is_too_small_is_honoured_warned_about_and_exits_with_4(capsys):
    options = ("diseases.csv", "--score", "people", "--epsilon", "1", "--sensitivity", "0.5")
    code, out, err = run(capsys, *options)
    assert code == 4
    assert err.startswith("policysim: warning: the claim of ε = 1 does not hold: the declared sensitivity 0.5 ")
    assert err.count("\n") == 1
    assert out.startswith("Release (claimed ε = 1 does NOT hold: loss up to 2, permute-and-flip): disease = ")
    assert "(ε = 1" not in out
    assert "Sensitivity of a count: 1, in use: 0.5. Privacy loss: 2 at ε = 1." in out
    code, out, _ = run(capsys, *options, "--json")
    released = json.loads(out)["release"]
    assert (code, released["privacy_loss"], released["choices"][0]["claim_holds"]) == (4, 2, False)
    assert len(released["warnings"]) == 1
    # Under add-or-remove-one the textbook's factor 2 is not needed, and the same declaration is enough.
    assert run(capsys, *options, *TEXTBOOK, "--adjacency", "add-or-remove-one")[0] == 0
    assert run(capsys, *options, "--adjacency", "add-or-remove-one")[0] == 4


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip", "report-noisy-max"])
@pytest.mark.parametrize(
    ("proportions", "declared", "adjacency", "most"),
    [
        (False, None, REPLACE, 1),
        (True, None, REPLACE, 1),
        (True, 0.5, REPLACE, 2),
        (False, None, ADD_OR_REMOVE, 2),
    ],
)
def test_a_person_who_changes_group_spends_epsilon_in_all(mechanism, proportions, declared, adjacency, most):
    """Both choices are published, and the person takes another value along."""
    terms = Terms(1.0, mechanism, sensitivity=declared, proportions=proportions, adjacency=adjacency)

    @cache
    def released(blue, red):
        counts = Counts("x.csv", "name", ("a", "b"), {"Blue": blue, "Red": red}, False)
        found = choices_by_group(counts, terms)
        first, second = (np.log(choice.selection.probabilities) for choice in found)
        return first[:, None] + second, release_document(counts, terms, found, lambda _: "a")["group_change_loss"]

    worst, stated = 0.0, 0.0
    for a, b, c, d in product((0, 1, 9), repeat=4):
        if a and min(a + b, c + d) > 1:
            here, loss = released((a, b), (c, d))
            for moved in ((c + 1, d), (c, d + 1)):
                change = float(np.abs(here - released((a - 1, b), moved)[0]).max())
                assert change <= loss + 1e-12
                worst, stated = max(worst, change), max(stated, loss)
    assert stated <= most * (1 + 1e-12)
    assert worst > 0.7  # of 1: for sizes that move the scale, such small groups reach a third of what is stated


def test_what_changing_group_costs_is_printed(capsys):
    options = ("socks.csv", "--column", "behaviour", "--by", "sock", "--epsilon", "1")
    words = " ".join(run(capsys, *options)[1].split())
    assert "If a person's group changes, too, two choices change: a privacy loss of up to 1 in all." in words


# What is refused.


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--epsilon", "-1"], 2, "--epsilon must be a finite number >= 0, got '-1'"),
        (["--mechanism", "exponentail"], 2, "unknown mechanism 'exponentail'; did you mean 'exponential'?"),
        (["--mechanism", "exponential-monotone"], 2, "exponential-monotone needs scores that only rise"),
        (["--groups", "a,b"], 2, "--groups only goes with --by"),
        (["--candidates", "1,1.0"], 2, "--candidates: two of the levels 1, 1.0 are the same"),
        (["--split-by-share"], 2, "--split-by-share only goes with --by"),
        (["--column", "desease"], 3, "diseases.csv: unknown column 'desease'; did you mean 'disease'? known: "),
    ],
)
def test_wrong_options_are_refused_in_one_line(capsys, options, code, message):
    found, out, err = run(capsys, "diseases.csv", "--score", "people", "--epsilon", "1", *options)
    assert (found, out) == (code, "")
    assert err.startswith(f"policysim: {message}")
    assert err.count("\n") == 1


def test_shares_of_nobody_are_refused(capsys, files):
    (files / "none.csv").write_text("name,people\na,0\nb,0\n", encoding="utf-8")
    code, _, err = run(capsys, "none.csv", "--score", "people", "--epsilon", "1")
    assert (code, err) == (3, "policysim: none.csv: counts no people\n")
    (files / "half.csv").write_text("name,people,ward\na,0,x\nb,0,x\na,1,y\n", encoding="utf-8")
    options = ("half.csv", "--score", "people", "--column", "name", "--by", "ward", "--epsilon", "1")
    code, _, err = run(capsys, *options, "--proportions")
    assert (code, err) == (3, "policysim: half.csv: x has no people\n")
    assert run(capsys, *options)[0] == 0


@pytest.mark.parametrize(("mechanism", "most"), [("report-noisy-max", 64), ("permute-and-flip", 2000)])
def test_too_many_candidates_for_the_exact_analysis_are_released_without_it(capsys, files, mechanism, most):
    rows = "".join(f"{i},{i}\n" for i in range(most + 1))
    (files / "many.csv").write_text(f"industry,people\n{rows}", encoding="utf-8")
    options = ("many.csv", "--score", "people", "--epsilon", "1", "--mechanism", mechanism)
    reason = f"The exact analysis of {mechanism} is not available for so many candidates: {most + 1:,}"
    code, out, err = run(capsys, *options, "--analysis")
    assert (code, err) == (0, "")
    public, private = out.split(LINE)
    assert public.startswith(f"Release (ε = 1, {mechanism}): industry = ")
    assert reason in " ".join(private.split())
    assert "is chosen with probability" not in out
    found = analysed(capsys, *options)
    assert found["release"]["choices"][0]["candidate"] in map(str, range(most + 1))
    (group,) = found["analysis_not_private"]["groups"]
    assert (group["probability_right"], group["expected_rank"]) == (None, None)
    assert {row["probability"] for row in group["candidates"]} == {None}
    assert group["not_available"].startswith(reason)
    # A simulation draws by the probabilities and needs them.
    code, out, err = run(capsys, *options, "--simulate", "1")
    assert (code, out) == (3, "")
    assert f"at most {most} candidates, got {most + 1}; exponential has no such limit" in err


def test_names_from_private_rows_are_warned_about_where_they_are_not_public(capsys):
    options = ("socks.csv", "--column", "behaviour", "--by", "sock", "--epsilon", "1", "--json")
    groups, candidates = ["--groups", "Blue,Red"], ["--candidates", "Violent,NonViolent"]
    hidden, known = ["the names of the groups"], ["everybody's group", "the groups and their sizes"]
    for adjacency, declared, n_warnings, public in (
        ("add-or-remove-one", [], 2, hidden),
        ("add-or-remove-one", [*groups, *candidates], 0, hidden),
        ("replace-one", candidates, 0, known),
    ):
        code, out, err = run(capsys, *options, *declared, "--adjacency", adjacency)
        released = json.loads(out)["release"]
        assert (code, released["assumptions"]["public"][1:-1]) == (0, public)
        lines = [line.removeprefix("policysim: warning: ") for line in err.splitlines()]
        assert lines == released["warnings"] and len(lines) == n_warnings
        assert all("taken from the private rows of socks.csv" in line for line in lines)
