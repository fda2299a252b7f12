"""The outcome that leads: any outcome can, by any name, and nothing above the scenarios knows one.

A relapse, and days in hospital, which are a number above 1, lead tables of one's own; an event, or deaths, a scenario.
"""

import numpy as np
import pandas as pd
import pytest
from small_studies import SCENARIO, STUDY, write_small_study

import policysim as ps
from envs import record_space
from policysim.cli.main import main
from policysim.decision.choose import Wish, choose
from policysim.decision.choose_findings import find
from policysim.decision.choose_words import screen_of
from policysim.decision.demands import UnreachableError
from policysim.decision.report import report
from policysim.study.labels import Labels, labels_of

UTILITIES = [[0.0, -0.1, -0.3], [-1.0, -0.4, -0.2], [0.0, -0.2, -0.5], [-2.0, -1.5, -0.5]]
HARM = np.array([[0.0, 0.0, 0.001], [0.01, 0.004, 0.002], [0.0, 0.001, 0.004], [0.04, 0.03, 0.01]])
PAIN = np.tile([0.05, 0.1, 0.4], (4, 1))
POLICIES = ["best-fixed", "exponential", "exponential-fitted", "optimal-safe", "optimal"]

# What is expected of each kind of patient: of genes A and B, by dose. Days in hospital are above 1.
KINDS = pd.DataFrame(
    [
        ("A", "young", 30, "low", 0.10, 2.0),
        ("A", "young", 30, "high", 0.30, 6.0),
        ("A", "old", 20, "low", 0.20, 4.0),
        ("A", "old", 20, "high", 0.25, 5.0),
        ("B", "young", 30, "low", 0.60, 9.0),
        ("B", "young", 30, "high", 0.05, 7.0),
        ("B", "old", 20, "low", 0.70, 12.0),
        ("B", "old", 20, "high", 0.10, 3.0),
    ],
    columns=["gene", "age", "patients", "dose", "relapse", "days_in_hospital"],
)
COHORT = """\
title = "Which dose?"
lead = "{lead}"
[cohort]
file = "kinds.csv"
features = ["gene", "age"]
treatment = "dose"
patients = "patients"
[privacy]
sensitive = ["gene"]
epsilon = 1
epsilons = [0.5, 1, 2]
[compare]
by = ["age"]
[utility]
weights = {{ relapse = 10, days_in_hospital = 0.5 }}
costs = {{ high = 0.3 }}
"""


def problem_led_by(name):
    """The same problem, whatever its outcome that leads is called."""
    space = record_space({"age": ["young", "old"], "ill": ["no", "yes"]})
    outcomes = {name: HARM, "pain": PAIN}
    return ps.DecisionProblem(
        UTILITIES, [0.5, 0.2, 0.2, 0.1], ps.AnyRecord(), records=space, outcomes=outcomes, lead=name
    )


def compared(problem):
    return report(problem, policies=POLICIES, epsilons=[0.5, 1.0, 2.0]).screen.text(full=True)


def chosen(problem):
    wish = Wish(keep=0.3, max_extra_lead=0.0001)
    findings = find(problem, choose(problem, wish, ["optimal", "exponential"]), Labels.of(problem))
    return screen_of(findings, Labels.of(problem)).text()


@pytest.mark.parametrize("printed", [compared, chosen])
def test_the_name_of_the_lead_changes_nothing_but_its_words(printed):
    death, falls = (" ".join(printed(problem_led_by(name)).split()) for name in ("death", "falls"))
    assert "death" in death
    assert death.replace("death", "falls").replace("Death", "Falls") == falls


def test_without_a_lead_all_that_needs_one_is_left_out():
    plain = problem_led_by("death")
    problem = ps.DecisionProblem(plain.utilities, plain.prior, plain.adjacency, outcomes=plain.outcomes)
    assert problem.lead is None
    found = report(problem, policies=["optimal", "exponential"], epsilons=[0.5, 1.0])
    assert "frontier" not in found.tables
    # What was not asked for is left out; what was asked for by name is refused.
    assert "optimal-safe" not in set(ps.compare(problem, epsilons=[1.0])["policy"])
    with pytest.raises(ValueError, match="optimal-safe bounds the outcome that leads, and the problem has no lead"):
        ps.compare(problem, policies=["optimal-safe"], epsilons=[1.0])
    # What it is to keep may be stated in place of a lead, and is then compared beside others.
    for stated in ({"at_most": {"pain": "one for all"}}, {"capacity": {"a2": 0.1}}):
        table = ps.compare(problem, policies=["optimal", ps.make_policy("optimal-safe", **stated)], epsilons=[1.0])
        kept = table.set_index("policy")[["extra_pain", "p_a2"]].loc["optimal-safe"]
        assert kept["extra_pain"] <= 1e-12 if "at_most" in stated else kept["p_a2"] <= 0.1 + 1e-12
    with pytest.raises(ValueError, match="frontier needs an outcome: the problem has no leading outcome"):
        ps.frontier(problem, [1.0])
    with pytest.raises(ValueError, match="max_extra_lead needs a problem with an outcome that leads"):
        ps.smallest_epsilon(problem, "optimal", max_extra_lead=0.1)


def test_a_lead_that_is_no_outcome_is_refused_with_those_that_are():
    with pytest.raises(ValueError, match=r"lead must be an outcome, got lead='deaths'; known: death, pain\."):
        ps.DecisionProblem(UTILITIES, [0.25] * 4, ps.AnyRecord(), outcomes={"death": HARM, "pain": PAIN}, lead="deaths")
    with pytest.raises(ValueError, match=r"got lead='death'; known: none\."):
        ps.DecisionProblem(UTILITIES, [0.25] * 4, ps.AnyRecord(), lead="death")


def test_what_is_made_of_a_problem_has_its_lead():
    plain = problem_led_by("pain")
    assert plain.with_prior([0.25] * 4).lead == "pain"
    mask = np.array([[True, True, False], [True, True, False], [True, True, True], [True, True, True]])
    adjacency = ps.Sensitive((2, 2), (1,))
    allowed = ps.DecisionProblem(
        UTILITIES, [0.25] * 4, adjacency, outcomes={"pain": PAIN}, admissible=mask, lead="pain"
    )
    assert [part.problem.lead for part in allowed.classes] == ["pain", "pain"]


def by_hand(column, doses):
    """What is expected of an outcome per patient if each gene and age gets these doses."""
    rows = KINDS[[doses[gene, age] == dose for gene, age, dose in KINDS[["gene", "age", "dose"]].to_numpy()]]
    return float(rows["patients"] @ rows[column]) / float(rows["patients"].sum())


@pytest.fixture(scope="module", params=["relapse", "days_in_hospital"])
def cohort(request, tmp_path_factory):
    """The lead, the folder of a study that it leads, and the report of that."""
    folder = tmp_path_factory.mktemp(request.param)
    KINDS.to_csv(folder / "kinds.csv", index=False)
    (folder / "study.toml").write_text(COHORT.format(lead=request.param))
    return request.param, folder, report(ps.load_study(folder / "study.toml"))


def test_a_table_of_ones_own_with_a_lead_has_a_full_report(cohort):
    lead, _, found = cohort
    comparison, options = found.tables["comparison"], found.tables["options"]
    # Each treatment for all, and the best for each, by hand.
    everyone = {(gene, age): "high" for gene in "AB" for age in ("young", "old")}
    best = {("A", "young"): "low", ("A", "old"): "low", ("B", "young"): "high", ("B", "old"): "high"}
    means = comparison.query("group == 'all' and epsilon == 1").set_index("policy")
    assert means.loc["best-fixed", f"expected_{lead}"] == pytest.approx(by_hand(lead, everyone), rel=1e-7)
    assert means.loc["greedy", f"expected_{lead}"] == pytest.approx(by_hand(lead, best), rel=1e-7)
    extra = means.loc["greedy", f"expected_{lead}"] - means.loc["best-fixed", f"expected_{lead}"]
    assert means.loc["greedy", f"extra_{lead}"] == pytest.approx(extra, rel=1e-6)
    # The best that costs no more of it than one for all is compared by default, and keeps that.
    assert means.loc["optimal-safe", f"extra_{lead}"] <= 1e-9
    rates = options.query("epsilon == 1").set_index("option")[f"expected_{lead}"]
    assert rates["C"] == pytest.approx(by_hand(lead, best), rel=1e-7)
    # It comes first in the table of the screen.
    assert found.screen.tables[0].rows[0][0].startswith(lead.replace("_", " ").capitalize())


def test_demands_bound_the_lead_of_a_table_per_100_000(cohort, capsys):
    lead, folder, _ = cohort
    study = ps.load_study(folder / "study.toml")
    problem = ps.build_problem(study)
    assert problem.lead == study.lead == lead
    least = ps.smallest_epsilon(problem, "optimal", keep=0.2, max_extra_lead=-0.01)
    most = problem.prior @ problem.of_best_fixed(problem.outcomes[lead]) - 0.01
    chances = ps.make_policy("optimal", epsilon=least, at_most={lead: most}).probabilities(problem)
    assert problem.prior @ (chances * problem.outcomes[lead]).sum(axis=1) <= most + 1e-9
    command = ["choose", str(folder / "study.toml"), "--keep", "20%", "--max-extra-lead=-1000", "--policy", "optimal"]
    assert main(command) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"{lead.replace('_', ' ')} beyond A ≤ −1,000 per 100,000" in said


@pytest.mark.usefixtures("blank_drawings")
@pytest.mark.parametrize(("lead", "title"), [("death", "deaths"), ("symptoms", "symptoms"), ("stroke", "strokes")])
def test_deaths_lead_a_scenario_until_its_study_says_something_else(tmp_path, lead, title):
    events = SCENARIO.replace("[weights]", '[events.stroke]\ntitle = "strokes"\nbaseline = 0.01\n[weights]\nstroke = 2')
    path = write_small_study(tmp_path, STUDY if lead == "death" else f'lead = "{lead}"\n{STUDY}', events)
    study = ps.load_study(path)
    assert ps.build_problem(study).lead == study.lead == lead
    found = report(study, epsilons=[1.0], policies=["exponential", "optimal"])
    # No treatment changes strokes: the table leaves them out, and they lead the tables of numbers.
    assert title in found.screen.tables[0].rows[0][0].lower() or lead == "stroke"
    assert f"extra_{lead}" in found.tables["comparison"]
    # What is counted of each day leads there, too: death, and events.
    course = ps.build_course(study, 2)
    assert course.lead == (None if lead == "symptoms" else lead)
    if course.lead is not None:
        counted = ps.compare(course, policies=["uniform"], epsilons=[1.0])[f"extra_{lead}"].iloc[0]
        assert ps.smallest_epsilon(course, "uniform", max_extra_lead=counted + 1e-9) == 0
        with pytest.raises(UnreachableError):
            ps.smallest_epsilon(course, "uniform", max_extra_lead=counted - 1e-6)


@pytest.mark.parametrize(
    ("lead", "weight", "one"),
    [("death", 10, "a death"), ("costs", 1, "one unit of cost"), ("symptoms", 0, "one symptom")],
)
def test_what_a_study_says_one_of_its_lead_weighs_is_in_the_zone_of_its_verdict(tmp_path, lead, weight, one):
    """A unit of costs weighs 1. Symptoms have a weight each: what one weighs beyond it is 0 in the study."""
    study = ps.load_study(write_small_study(tmp_path, f'lead = "{lead}"\n{STUDY}'))
    found = report(study, epsilons=[1.0], policies=["optimal"])
    details, table = found.findings.details, found.findings.differences
    assert details.lead_weight == weight
    row = table[table["option"].eq("B") & table["than"].eq("A") & table["outcome"].eq("utility")].iloc[0]
    assert details.exchange.better == row["better_in"]
    zones = details.exchange.zones
    held = zones[zones["low"].le(weight) & zones["high"].gt(weight)]
    assert held["verdict"].tolist() == [row["verdict"]]
    curve = details.acceptability.set_index("weight")["better"]
    assert curve[weight] * details.versions == pytest.approx(row["better_in"])
    # The utility itself, once more, from the versions: what the lead weighs is all that is taken off and put back.
    versions = details.exchange
    assert np.sum(versions.rest - weight * versions.lead > versions.rounding) == row["better_in"]
    assert labels_of(study, ps.build_problem(study)).one_of_lead == one


def test_an_unknown_lead_is_refused_by_line_with_what_there_is(tmp_path, capsys):
    assert main(["compare", str(write_small_study(tmp_path, f'lead = "days"\n{STUDY}'))]) == 2
    assert capsys.readouterr().err.endswith(
        "small.toml:1: lead: unknown outcome 'days'; known: death, symptoms, infected, fever, cough, costs; a number, "
        "such as days in hospital, cannot lead a scenario: write a table of your own, [cohort]\n"
    )
    KINDS.to_csv(tmp_path / "kinds.csv", index=False)
    (tmp_path / "own.toml").write_text(COHORT.format(lead="death"))
    assert main(["compare", str(tmp_path / "own.toml")]) == 2
    said = capsys.readouterr().err
    assert "own.toml:2: lead: unknown outcome 'death'; known: relapse, days_in_hospital" in said
    (tmp_path / "own.toml").write_text(COHORT.replace('"{lead}"', "3").format())
    assert main(["compare", str(tmp_path / "own.toml")]) == 2
    assert "own.toml:2: lead: must be text in quotes, got 3" in capsys.readouterr().err


def test_names_of_earlier_versions_are_refused_with_those_of_today(tmp_path, capsys):
    path = str(write_small_study(tmp_path))
    for arguments, wanted in (
        (["compare", path, "--at-most", "deaths=0.01"], "unknown outcome 'deaths'; did you mean 'death'?"),
        (["choose", path, "--at-most", "deaths=0.01"], "unknown outcome 'deaths'; did you mean 'death'?"),
        (["choose", path, "--max-extra-deaths", "5"], "did you mean --max-extra-lead?"),
    ):
        assert main(arguments) == 2
        assert wanted in capsys.readouterr().err
    for section, key in (("compare", "at_most.deaths"), ("utility", "weights.deaths")):
        table, name = key.split(".")
        text = STUDY.replace("[compare]\n", f"[compare]\n{table} = {{ {name} = 1 }}\n")
        text = text if section == "compare" else f"{STUDY}\n[utility]\n{table} = {{ {name} = 1 }}\n"
        assert main(["compare", str(write_small_study(tmp_path / section, text))]) == 2
        assert f"{section}.{key}: unknown outcome 'deaths'; did you mean 'death'?" in capsys.readouterr().err
    with pytest.raises(TypeError, match="unknown demand 'max_extra_deaths'; did you mean 'max_extra_lead'"):
        ps.smallest_epsilon(problem_led_by("death"), "optimal", max_extra_deaths=0.1)
