"""What `choose` finds and says: against independent formulas, never against a verdict, and with its page and files."""

import html
import json
import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from page_policy import breaks
from printed_numbers import unknown_numbers
from small_studies import write_small_study

import policysim as ps
from policies import make_policy
from policysim.cli.main import main
from policysim.decision.choose import Wish, choose, rows_of
from policysim.decision.choose_findings import MECHANISM, SINGLE, UNSURE, find
from policysim.decision.choose_report import report, report_of_choices
from policysim.decision.choose_words import LEAD_PER, MOST_DIGITS, VALUE_DIGITS, screen_of
from policysim.decision.demands import SCANNED
from policysim.decision.redraws import Redrawn, redrawn
from policysim.numbers import enough, not_above, plain, right, rounded_down
from policysim.report.findings import Findings
from policysim.report.folder import FigureFiles, folder_files
from policysim.report.report import Report
from policysim.report.screen import Line, Option, Screen
from policysim.study.labels import Labels, labels_of

POLICIES = ["optimal", "randomized-response", "exponential"]


def tables_of(problem, choices):
    """The probabilities of all options, made by hand or by the mechanisms: by letter or name."""
    eye, prior = np.eye(problem.n_actions), problem.prior[:, None]
    fixed = eye[np.full(problem.n_records, (prior * problem.utilities).sum(axis=0).argmax())]
    safest = eye[np.full(problem.n_records, (prior * problem.outcomes["death"]).sum(axis=0).argmin())]
    mechanisms = {name: policy.probabilities(problem) for name, policy in choices.mechanisms.items()}
    return {"A": safest, "D": fixed, "C": eye[problem.utilities.argmax(axis=1)]}, mechanisms


def test_the_numbers_of_every_option_are_those_of_its_table_of_probabilities(ward):
    problem = ward.problem
    choices = choose(problem, Wish(keep=0.2, at_most={"symptoms": "one for all"}), POLICIES)
    options = report_of_choices(ward.study, problem, choices).findings.options.set_index("policy", drop=False)
    # One mechanism has a larger epsilon, at which it is better, too.
    assert options.loc["optimal", "epsilon"] > choices.mechanisms["optimal"].epsilon
    at_printed = {name: replace(one, epsilon=options.loc[name, "epsilon"]) for name, one in choices.mechanisms.items()}
    lettered, mechanisms = tables_of(problem, replace(choices, mechanisms=at_printed))
    rows = {row["option"]: row for row in rows_of(options) if row["option"] in lettered}
    assert set(rows) == set(lettered) and set(mechanisms) <= set(options.index)
    prior, death = problem.prior[:, None], problem.outcomes["death"]
    best, fixed = lettered["C"], lettered["D"]
    gain = (prior * (best - fixed) * problem.utilities).sum()
    for row, table in [(rows[letter], lettered[letter]) for letter in lettered] + [
        (rows_of(options.loc[[name]])[0], mechanisms[name]) for name in mechanisms
    ]:
        lost = (prior * (best - table) * problem.utilities).sum()
        expected = {
            "expected_death": (prior * table * death).sum(),
            "expected_symptoms": (prior * table * problem.outcomes["symptoms"]).sum(),
            "loss": lost,
            "benefit_kept": 1 - lost / gain,
        }
        assert {name: row[name] for name in expected} == pytest.approx(expected, abs=1e-12)
        more = round(1e5 * expected["expected_death"]) - round(1e5 * (prior * lettered["A"] * death).sum())
        assert row["more_lead"] * 1e5 == pytest.approx(more, abs=1e-6)


@pytest.mark.parametrize("wish", [Wish(keep=0.2), Wish(keep=0.2, at_most={"symptoms": "one for all"})], ids=str)
def test_chosen_is_the_least_epsilon_of_two_digits_at_which_a_mechanism_meets_the_demands_and_is_better(ward, wish):
    """By looking at all of them; at the least that meets the demands no mechanism is better."""
    choices = choose(ward.problem, wish, POLICIES)
    found = report_of_choices(ward.study, ward.problem, choices)
    details, least = found.findings.details, choices.least["epsilon"]
    demand = wish.demand(ward.problem)

    def are_good(epsilon):
        policies = [replace(one, epsilon=epsilon) for one in choices.mechanisms.values()]
        drawn = redrawn(ward.study, ward.problem, [*policies, make_policy("best-fixed")]).options
        values = drawn.pivot(index="draw", columns="option", values="value")
        return [
            one.name
            for one in policies
            if demand.margin(ward.problem, one.probabilities(ward.problem)) >= 0
            and (values[one.name] > values["best-fixed"] + 1e-12).mean() >= 0.9
        ]

    first = next(epsilon for epsilon in np.round(np.arange(least, 10, 0.1), 1) if are_good(epsilon))
    chosen = found.findings.options.set_index("option").loc["B"]
    assert first > least and chosen["epsilon"] == first
    assert chosen["policy"] in are_good(first) and chosen["chosen"]
    assert (details.choice, details.chosen, details.raised) == (MECHANISM, "B", True)
    smaller = f"At ε = {plain(details.next_epsilon)} B is not shown to be better than D."
    assert smaller in " ".join(found.screen.text().split())


# Up to ε = 1.7 no mechanism is better.
@pytest.mark.parametrize(("wish", "choice"), [(Wish(keep=0.0), SINGLE), (Wish(keep=0.2, max_guess=0.845), UNSURE)])
def test_versions_of_the_model_decide_between_a_mechanism_and_one_treatment_for_everyone(ward, wish, choice):
    found = report_of_choices(ward.study, ward.problem, choose(ward.problem, wish, POLICIES))
    details = found.findings.details
    assert (details.choice, details.chosen, details.single) == (choice, "D", "D")
    assert ("none is shown to be better than D" in found.screen.advice) == (choice == UNSURE)


WISHES = [
    Wish(keep=0.3),
    Wish(max_loss=0.4),
    Wish(max_extra_lead=0.0),
    Wish(keep=0.5, max_guess=0.8),
    Wish(keep=-1),
    Wish(keep=0.6, max_guess_rate=0.7, at_most={"death": 0.06}),
]


@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_nothing_is_chosen_against_its_verdict_and_each_demand_is_met_as_stated(wish):
    """Versions in which each mechanism is better with a chance of its own, many for one choice: it takes longest."""
    rng = np.random.default_rng(4)
    deaths = {"death": rng.random((4, 3)) / 10}
    utilities, prior = rng.normal(size=(4, 3)), rng.dirichlet(np.ones(4))
    problem = ps.DecisionProblem(utilities, prior, ps.AnyRecord(), outcomes=deaths, lead="death")
    choices = choose(problem, wish, POLICIES)
    values = {"best-fixed": 0.0, "greedy": 1.0, **{f"for all: {name}": 0.0 for name in problem.actions}}
    for _ in range(4):
        chances = {name: rng.choice([0.0, 0.5, 0.88, 0.92, 1.0]) for name in choices.mechanisms}
        rows = [
            (place, option, values.get(option, 1.0 if place < 50 * chances.get(option, 0) else -1.0), 0.0)
            for place in range(50)
            for option in [*values, *choices.mechanisms]
        ]
        drawn = pd.DataFrame(rows, columns=["draw", "option", "value", "expected_death"])
        check_choice(problem, choices, chances, find(problem, choices, Labels.of(problem), versions=Redrawn(drawn, {})))


def check_choice(problem, choices, chances, findings):
    """What is chosen is what the versions say, and each demand is met or not by an independent formula."""
    details, options = findings.details, findings.options.set_index("option")
    allowed = [row for row in rows_of(choices.needs) if row["allowed"]]
    meets = choices.for_all["allowed"].any()
    better = [row["policy"] for row in allowed if chances[row["policy"]] >= 0.9]
    assert (details.chosen == "") == (not meets and not allowed) == (details.choice not in {MECHANISM, SINGLE, UNSURE})
    assert (details.choice == MECHANISM) == (not meets and bool(better))
    if details.choice == MECHANISM:
        assert (details.chosen, options.loc["B", "policy"]) == ("B", better[0])
    elif details.chosen:
        assert options.loc[details.chosen, "epsilon"] == 0
        assert options.loc[details.chosen, "allowed"] or details.choice == UNSURE
    lettered, _ = tables_of(problem, choices)
    fixed = (problem.prior[:, None] * lettered["D"] * problem.utilities).sum()
    best = (problem.prior[:, None] * lettered["C"] * problem.utilities).sum()
    by_lot = problem.prior @ problem.utilities.mean(axis=1)
    for row in rows_of(details.demands[details.demands["epsilon"] != details.next_epsilon]):
        option = options.loc[row["option"]]
        value, death = option["value"], option["expected_death"]
        extra = death - (problem.prior[:, None] * lettered["D"] * problem.outcomes["death"]).sum()
        of_demand = {
            "keep": (value - fixed) / (best - fixed),
            "max_loss": (best - value) / (best - by_lot),
            "max_extra_lead": extra,
            "at_most": death,
            "max_guess": 1 / (1 + math.exp(-option["epsilon"])),
            "max_guess_rate": option["guess_rate"],
        }[row["demand"]]
        assert row["value"] == pytest.approx(of_demand, abs=1e-9)
        spare = of_demand - row["limit"] if row["demand"] == "keep" else row["limit"] - of_demand
        assert row["met"] == (spare >= -1e-9)
    # B meets all demands, but where only guesses forbid it; at the next smaller ε it does not, or nobody has shown it.
    of_b = details.demands[(details.demands["option"] == "B") & (details.demands["epsilon"] != details.next_epsilon)]
    assert of_b.empty or of_b["met"].all() == bool(options.loc["B", "allowed"])
    lines = screen_of(findings, Labels.of(problem)).text().splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 100


def test_the_next_smaller_epsilon_is_impossible_or_fails_a_demand(ward):
    problem = ward.problem
    details = find(problem, choose(problem, Wish(keep=0.8), ["randomized-response"]), Labels.of(problem)).details
    assert details.next_impossible and details.next_epsilon not in set(details.demands["epsilon"])
    details = find(problem, choose(problem, Wish(keep=0.8), ["exponential"]), Labels.of(problem)).details
    below = ps.make_policy("exponential", epsilon=details.next_epsilon).probabilities(problem)
    (row,) = rows_of(details.demands[details.demands["epsilon"] == details.next_epsilon])
    assert not details.next_impossible and not row["met"]
    kept = (problem.value(below) - problem.best_fixed_value) / (
        problem.prior @ problem.utilities.max(axis=1) - problem.best_fixed_value
    )
    assert row["value"] == pytest.approx(kept, abs=1e-12) and kept < 0.8


def test_without_versions_a_choice_is_as_stated():
    problem = ps.DecisionProblem(np.eye(2), [0.5, 0.5], ps.AnyRecord())
    findings = find(problem, choose(problem, Wish(keep=0.8), ["optimal"]), Labels.of(problem))
    details = findings.details
    assert (details.choice, details.next_epsilon, details.next_impossible) == (MECHANISM, 2.1, True)
    assert details.versions == 0 and details.verdicts["better_in"].isna().all()
    screen = screen_of(findings, Labels.of(problem))
    assert "Choose B at ε = 2.2" in screen.advice and "by the stated numbers alone: better." in screen.advice
    assert not any("beats" in head for head in screen.tables[0].head)


@pytest.mark.parametrize(("fewer", "of_a"), [(1e-12, "a0"), (1e-3, "a1")])
def test_a_has_the_fewest_of_the_lead_where_that_can_be_seen_and_else_the_best_utility(fewer, of_a):
    deaths = np.array([[0.01 + fewer, 0.01]] * 2)
    utilities = [[1.0, 0.2], [0.4, 0.5]]
    problem = ps.DecisionProblem(utilities, [0.5, 0.5], ps.AnyRecord(), outcomes={"death": deaths}, lead="death")
    options = find(problem, choose(problem, Wish(keep=0.5), ["optimal"]), Labels.of(problem)).options
    assert options.set_index("option").loc["A", "title"] == of_a


def test_no_share_of_a_tiny_gain_is_printed_and_what_is_not_used_is_a_warning():
    shape = ps.Sensitive((2, 3), (1,))
    tiny = ps.DecisionProblem([[1.0, 0.0], [1.0, 0.0], [0.0, 0.01]] * 2, np.full(6, 1 / 6), shape)
    findings = find(tiny, choose(tiny, Wish(keep=0.5), POLICIES), Labels.of(tiny))
    assert "gain kept" not in screen_of(findings, Labels.of(tiny)).tables[0].head
    same = ps.DecisionProblem([[0.0, 1.0], [2.0, 0.0], [0.0, 1.0]] * 2, np.full(6, 1 / 6), ps.Sensitive((2, 3), (0,)))
    findings = find(same, choose(same, Wish(keep=0.8), POLICIES), Labels.of(same))
    assert "no choice of a treatment depends on what is hidden" in findings.warnings[0]


PRINTED = [
    Wish(keep=0.8, max_guess=0.85),
    Wish(at_most={"death": 0.001}),
    Wish(max_extra_lead=0.0001, max_loss=0.3, max_guess_rate=0.9),
]


@pytest.mark.parametrize("wish", PRINTED, ids=str)
def test_each_printed_number_is_one_of_the_findings(ward, wish):
    found = report(ward.study, wish, policies=POLICIES)
    details = found.findings.details
    scaled = np.outer([1, 100, LEAD_PER], details.demands["value"]).ravel()
    bounds = {plain(abs(side(value, VALUE_DIGITS))) for value in scaled for side in (enough, not_above)}
    bounds |= {rounded_down(each, MOST_DIGITS) for each in details.least_possible.values()} | {
        plain(100 * SCANNED - 100)
    }
    unknown = {
        number for number, _ in unknown_numbers(found.screen, found.findings, labels_of(ward.study, ward.problem))
    }
    assert unknown <= bounds


@pytest.mark.usefixtures("all_redraws")
def test_the_screen(ward):
    printed = report(ward.study, Wish(keep=0.8, max_guess_rate=0.95), policies=POLICIES)
    assert str(printed).replace("\u00a0", " ") == SCREEN


SCREEN = """\
Ward: which treatment to give when others can see it
Choose B at ε = 3.3: of all mechanisms that meet the demands and are better than D, it needs the
least ε. B has more utility than D in 200 of 200 versions of the model, in which its uncertain
numbers vary.
A model, not medical advice: 21 of its 24 numbers are assumed.
Secret: the patient's whole record. Observer: the insurer.
A  Antibiotic for everyone   hides everything: the treatment says nothing about the secret
B  Best private draw         drawn at random, with chances that depend on the record; hides it up to
                             ε = 3.3
C  Best for each patient     best under the weights of this study; hides nothing
D  Cough syrup for everyone  hides everything: the treatment says nothing about the secret

Demands              Does an option meet them? In brackets, what it has.
                       gain kept ≥ 80 %        A no (−142.4 %), B yes (81.53 %), C yes (100 %),
                                               D no (0 %)
                       told apart ≤ 95 of 100  A yes (50), B yes (94.85), C no (100), D yes (50)
A smaller ε          ε = 3.2 is not enough, for B or for any other mechanism: that is proved.
B instead of A       Per 100,000 patients: 21.8 fewer deaths and 7,620 less utility lost. B has more
                     utility than A in 200 of 200 versions of the model.

                                deaths   more   utility          beats    told
                                   per   than  lost per    gain  D, of  apart,
At its least ε              ε  100,000      A   100,000    kept    200  of 100
A  antibiotic               0    536.6      0     8,244  −142 %      –    50.0  demands not met
B  optimal                3.3    514.8  −21.8       628    82 %    200    94.8           chosen
C  best for each patient    ∞    505.3  −31.3         0   100 %    200   100.0    hides nothing
D  cough syrup              0    586.1  +49.5     3,401     0 %      –    50.0  demands not met
   randomized-response    3.3    514.8  −21.8       628    82 %    200    94.8
   exponential            180    506.5  −30.1       639    81 %    200   100.0      not allowed
Gain kept: 0 % is D, 100 % is C.
Told apart: how often an observer of one treatment distinguishes two patients (coin toss: 50 of
100). A second treatment leaks again: only ε bounds what several reveal together.
Proofs are about mechanisms that give each patient the treatment that observers see.
What is limited may rise and fall with ε: but for optimal, a least ε is the least of a grid in steps
of 15 %.
"""


def compared_at(study):
    """A report in place of that of `compare`: its words and numbers do not matter here."""
    nothing = pd.DataFrame()
    screens = {
        epsilon: Screen(title=study.title, options=(Option("A", "a", "b"),), lines=(Line("At", f"ε = {epsilon:g}"),))
        for epsilon in study.epsilons
    }
    table = pd.DataFrame({"epsilon": study.epsilons})
    findings = Findings(options=table, differences=nothing, harmed=nothing, leaks=nothing)
    return Report(findings=findings, screen=screens[study.epsilon], screens=screens, epsilon=study.epsilon)


def test_the_page_has_the_choice_and_then_the_comparison_at_the_chosen_epsilon(tmp_path):
    study = ps.load_study(write_small_study(tmp_path / "study"))
    asked = {"policies": ["randomized-response"]}
    alone, both = (report(study, Wish(keep=0.8), compared=compared, **asked) for compared in (None, compared_at))
    assert str(both) == str(alone)
    (epsilon,) = alone.findings.options.loc[alone.findings.options["chosen"], "epsilon"]
    assert both.epsilon == epsilon
    files = folder_files(both, FigureFiles(()))
    assert {"options.csv", "choice-options.csv"} <= set(files)
    assert json.loads(files["manifest.json"])["answer"] == [f"{line.label}: {line.text}" for line in alone.screen.lines]
    page = files["report.html"].decode()
    choice, compared = page.split('id="all-options"')
    assert f"Choose B at ε = {epsilon}" in html.unescape(choice)
    assert f"<dd>ε = {epsilon}" in compared
    # The slider changes the comparison alone: the choice stays.
    moving = json.loads(re.search(r'id="moving">(.*?)</script>', page, re.DOTALL)[1])
    assert f"<dd>ε = {epsilon}" in moving["answers"][moving["position"]]
    assert len(set(moving["answers"])) == len(moving["epsilons"]) and "Choose B" not in "".join(moving["answers"])
    assert breaks(page) == []
    document = both.document()
    assert document["details"]["chosen"] == "B" and document["rows"][0]["policy"] == "randomized-response"


def test_the_command_prints_writes_and_says_what_it_found(capsys, tmp_path):
    study = str(write_small_study(tmp_path / "study"))
    options = ("choose", study, "--keep", "80%", "--max-guess-rate", "99%", "--policy", "randomized-response")
    assert main([*options, "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert printed.endswith(f"Report: {(tmp_path / 'out').as_posix()}/report.html\n")
    assert main([*options, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    details, row = document["details"], document["rows"][0]
    assert (details["chosen"], details["possible"]) == ("B", True)
    assert f"Choose B at ε = {row['epsilon']}" in printed
    cells = next(line.split() for line in printed.splitlines() if line.startswith("B  randomized-response"))
    assert float(cells[2]) == row["epsilon"]
    assert right(row["guess_rate"]) in cells
    assert row["guess_rate"] <= row["right_guesses"]


def test_where_only_a_publication_is_seen_the_best_for_each_is_given(ward):
    study = replace(ward.study, seen="publication")
    found = report_of_choices(study, ward.problem, choose(ward.problem, Wish(keep=0.5), ["optimal"]))
    assert (found.findings.details.chosen, found.exit_code) == ("C", 0)
    # The epsilon of the copy, which is that of `compare`; patients need none.
    assert "randomised response at the study's ε = 1 " in found.screen.advice


@pytest.mark.parametrize("wish", [{"death": -1.0}, {"deths": 1.0}])
def test_a_bound_that_is_none_is_refused(ward, wish):
    with pytest.raises(ValueError, match="at_most: de"):
        report(ward.study, Wish(at_most=wish))


def test_where_a_mechanism_hides_as_much_as_the_chosen_treatment_and_loses_less_the_first_sentence_says_so():
    """Half treated, half not, whoever it is: within the bound, and better than treating nobody."""
    outcomes = {"bleeding": np.array([[0.0, 1.0], [0.0, 1.0]])}
    problem = ps.DecisionProblem([[0.0, 1.0], [0.0, 1.0]], [0.5, 0.5], ps.AnyRecord(), outcomes=outcomes)
    choices = choose(problem, Wish(at_most={"bleeding": 0.5}), ["optimal"])
    labels = Labels.of(problem)
    findings = find(problem, choices, labels)
    assert (findings.details.choice, choices.needs.loc[0, "epsilon"]) == (SINGLE, 0)
    advice = screen_of(findings, labels).advice
    told = r"needs no ε\. B at ε = 0, .* hides as much and loses less: ([\d,]+) instead of ([\d,]+) units"
    less, more = (float(number.replace(",", "")) for number in re.search(told, advice).groups())
    assert less == more / 2


def test_where_nothing_is_chosen_the_exit_code_says_so(tmp_path, capsys):
    study = write_small_study(tmp_path)
    assert main(["choose", str(study), "--keep", "100%", "--policy", "exponential"]) == 4
    assert "None of the mechanisms that were compared meets the demands" in capsys.readouterr().out
