"""The report on one decision: letters and columns, verdicts on planted versions, and problems of one's own."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from random_studies import case

import policysim as ps
from envs import record_space
from policies.policy import Policy
from policysim.decision.evidence import gather
from policysim.decision.find import find
from policysim.decision.redraws import Redrawn
from policysim.decision.report import report
from policysim.decision.words import screen_of
from policysim.report.findings import BETTER, EQUAL, NOT_SHOWN, UTILITY, WORSE
from policysim.study.labels import Labels

SPACE = record_space({"age": ["young", "middle", "old"], "ill": [0, 1], "sex": ["f", "m"]})
RNG = np.random.default_rng(7)
UTILITIES, PRIOR = RNG.normal(size=(12, 3)), RNG.dirichlet(np.ones(12))
OUTCOMES = {"death": RNG.random((12, 3)) / 10, "pain": RNG.random((12, 3))}


def own(adjacency=None, utilities=UTILITIES, prior=PRIOR, **given):
    return ps.DecisionProblem(utilities, prior, adjacency or ps.AnyRecord(), **given)


@dataclass(frozen=True)
class AtRandom(Policy):
    """A policy of somebody else's."""

    name = "at-random"

    def _log_probabilities(self, problem):
        return np.full(problem.utilities.shape, -np.log(problem.n_actions))


def letters(made):
    """The policy of each letter."""
    table = made.findings.options.query("section == 'option'").drop_duplicates("option")
    return dict(zip(table["option"], table["policy"], strict=True))


def difference(findings, option, than, outcome=UTILITY):
    table = findings.differences
    rows = table[table["option"].eq(option) & table["than"].eq(than) & table["outcome"].eq(outcome)]
    return rows.set_index("epsilon").loc[findings.details.epsilon]


def test_policies_that_were_asked_for_by_name_get_letters_as_far_as_there_is_room():
    plain = report(own(), epsilons=[1.0])
    assert list(letters(plain).values())[:3] == ["same-for-alike", "exponential-fitted", "greedy"]
    made = report(own(), policies=["optimal", "permute-and-flip", AtRandom(), "greedy"], epsilons=[1.0])
    assert [*letters(made).values()][3:] == ["optimal", "permute-and-flip"]
    assert made.findings.details.unlettered == ("at-random",)
    assert "No room here, but in --full: at-random." in made.screen.notes
    alone = report(own(), policies=[AtRandom()], epsilons=[1.0])
    values = alone.findings.options.set_index("policy")["value"]
    assert letters(alone)["D"] == "at-random"
    assert values["at-random"] == pytest.approx(PRIOR @ UTILITIES.mean(axis=1))


def test_where_there_are_no_floors_the_optimum_is_the_best_private_draw():
    assert letters(report(own(ps.OneFeature(SPACE.shape)), epsilons=[1.0]))["B"] == "optimal"
    assert letters(report(own(), epsilons=[np.inf]))["B"] == "optimal"
    assert letters(report(own(), epsilons=[1.0]))["B"] == "exponential-fitted"


@pytest.fixture(scope="module")
def evidence():
    problem = own(outcomes=OUTCOMES, lead="death")
    return gather(problem, Labels.of(problem), (), epsilon=2.0, epsilons=(2.0,))


@pytest.mark.parametrize(
    ("better", "equal", "verdict"),
    [
        (20, 0, BETTER),
        (18, 0, BETTER),
        (17, 0, NOT_SHOWN),
        (3, 0, NOT_SHOWN),
        (2, 0, WORSE),
        (0, 18, EQUAL),
        (0, 1, WORSE),
    ],
)
def test_the_verdict_is_that_of_the_versions(evidence, better, equal, verdict):
    """Whatever the stated numbers say: B is better in so many versions of 20, and as good in so many."""
    rows = [
        (
            draw,
            name,
            float(name == "exponential-fitted") * (draw < better)
            - (draw >= better + equal and name == "exponential-fitted"),
            0.1,
        )
        for draw in range(20)
        for name in dict.fromkeys(evidence.tables["comparison"]["policy"])
    ]
    drawn = pd.DataFrame(rows, columns=["draw", "option", "value", "expected_death"]).assign(
        expected_pain=0.1, lead_weight=0.0
    )
    (findings,) = find(replace(evidence, versions=Redrawn(drawn, {"together": 3}))).values()
    row = difference(findings, "B", "A")
    assert (row["verdict"], row["better_in"]) == (verdict, better)
    assert difference(findings, "B", "A", "death")["verdict"] == EQUAL
    screen = screen_of(findings, evidence.labels)
    assert screen.advice.startswith("Choose B") == (verdict == BETTER)
    words = [text for line in screen.lines for text in (line.text, *map(" ".join, line.rows)) if "B is better" in text]
    assert all("cannot show" in text for text in words) or verdict == BETTER


def test_rare_events_are_counted_among_patients_written_out():
    """Two of ten million patients die with one treatment, and three with the other."""
    deaths = np.tile([2e-7, 3e-7, 3e-7], (12, 1))
    made = report(own(outcomes={"death": deaths}, lead="death"), epsilons=[1.0])
    assert made.findings.details.patients == 10_000_000
    rows = made.findings.details.table.set_index("outcome")
    assert rows.loc["death", "A"] == 2 < rows.loc["death", "C"] < 3


def test_a_document_has_no_table_twice():
    document = report(own(), policies=["optimal"], epsilons=[1.0]).document()
    tables = [str(value) for value in document.values() if isinstance(value, list) and value]
    assert "table" in document and "tables" not in document["details"]
    assert len(tables) == len(set(tables))


def test_an_epsilon_that_has_too_many_digits_is_rounded_up_first():
    made = report(own(), policies=["optimal"], epsilons=(0.5, 1.23456789))
    assert set(made.findings.options["epsilon"]) == {0.5, 1.23457}
    assert made.epsilon == made.findings.details.epsilon == 1.23457


def test_its_comparison_is_that_of_compare():
    asked = {"policies": ["exponential", "optimal"], "epsilons": [0.5, 1.0]}
    problem = own(records=SPACE, outcomes=OUTCOMES, lead="death")
    table, compared = report(problem, **asked).tables["comparison"], ps.compare(problem, **asked)
    table = table[table["policy"].isin(asked["policies"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(table, compared, rtol=1e-6, atol=1e-12)


def test_the_floors_of_a_report_are_those_between_which_all_odds_lie():
    hidden = ps.Sensitive(SPACE.shape, (1,))
    problem = own(hidden, utilities=np.random.default_rng(1).normal(size=(12, 3)), records=SPACE)
    floors = report(problem, policies=["exponential-fitted"], epsilons=[1.0]).tables["floors"]
    table = ps.make_policy("exponential-fitted", epsilon=1.0).probabilities(problem)
    (age, ages), (sex, sexes) = SPACE.groups("age"), SPACE.groups("sex")
    assert len(floors) == 3 * 2 * 3
    for (one, other), rows in floors.groupby(["age", "sex"]):
        odds = table[(np.array(ages)[age] == one) & (np.array(sexes)[sex] == other)]
        low, high = rows["floor"].to_numpy(), rows["ceiling"].to_numpy()
        assert (low <= odds + 1e-8).all() and (odds <= high + 1e-8).all()
        assert high == pytest.approx(np.minimum(np.e * low, 1.0), rel=1e-6) and low.sum() <= 1 <= high.sum() + 1e-8


def test_the_errors_of_a_list_are_those_of_as_many_patients_as_the_study_says():
    """Of values as the square root of the patients; of a table of counts not at all."""
    few = case(6)
    many = replace(few, study=replace(few.study, published_patients=40_000))
    errors = [
        each.evidence.tables["publishing"].set_index(["epsilon", "way"])["error_of_a_count"] for each in (few, many)
    ]
    ratios = (errors[1] / errors[0]).dropna().groupby("way").first()
    assert ratios["noisy values"] == pytest.approx(2)
    assert ratios["noisy table"] == pytest.approx(1)


def test_a_list_is_advised_only_where_only_a_list_is_seen_and_the_best_for_each_is_better(evidence):
    (findings,) = find(evidence).values()
    assert difference(findings, "A", "C")["verdict"] == WORSE
    seen, published = (screen_of(findings, evidence.labels, seen=each) for each in ("treatment", "publication"))
    assert "list" not in seen.advice and "published list" in published.advice
    table = findings.differences
    equal = replace(findings, differences=table.assign(verdict=table["verdict"].where(table["than"] != "C", EQUAL)))
    assert screen_of(equal, evidence.labels, seen="publication").advice == seen.advice


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilons": -1.0}, r"epsilon must be a number >= 0, got -1\.0"),
        ({"policies": []}, "policies must not be empty"),
        ({"policies": ["magic"]}, "unknown policy 'magic'"),
    ],
)
def test_what_cannot_be_asked_is_named(given, words):
    with pytest.raises(ValueError, match=words):
        report(own(), **given)


def test_a_study_takes_names_of_policies():
    with pytest.raises(ValueError, match="policies of a study are names from the catalogue, got"):
        report(ps.load_study("covid"), policies=[ps.make_policy("optimal")])


@pytest.mark.parametrize("changed", [0.0, 0.1])
def test_a_lead_that_no_option_changes_is_said_first(changed):
    falls = np.array([[0.2, 0.2 + changed], [0.3, 0.3]])
    utilities = np.array([[0.0, 1.0], [1.0, 0.0]])
    problem = own(utilities=utilities, prior=np.array([0.5, 0.5]), outcomes={"falls": falls}, lead="falls")
    warned = [warning for warning in report(problem, epsilons=[1.0]).findings.warnings if "changes falls" in warning]
    assert len(warned) == (changed == 0)
