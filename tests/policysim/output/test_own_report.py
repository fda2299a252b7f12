"""`policysim.output`, of a problem of one's own and of a study."""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from page_policy import breaks
from policysim.decision.decision_question import DecisionQuestion
from policysim.output.deliver import written_tables
from policysim.output.screen import screen
from policysim.study.certainty import as_stated
from small_studies import write_small_study

import policysim as ps
from envs import record_space
from policies.policy import Policy
from policysim.progress import SILENT

RNG = np.random.default_rng(7)
SPACE = record_space({"age": ["young", "middle", "old"], "ill": [0, 1], "sex": ["f", "m"]})
UTILITIES, PRIOR = RNG.normal(size=(12, 3)), RNG.dirichlet(np.ones(12))
OUTCOMES = {"death": RNG.random((12, 3)) / 10, "pain": RNG.random((12, 3))}
YOUNG = SPACE.groups("age")[0] == 0
MASK = ~np.column_stack([np.zeros(12, bool), YOUNG, np.zeros(12, bool)])
ANY, ILL = ps.AnyRecord(), ps.Sensitive(SPACE.shape, (1,))
ALWAYS = {
    "comparison",
    "examples",
    "patient-losses",
    "publishing",
    "options",
    "certainty",
    "differences",
    "facts",
    "policies",
    "method",
}


@dataclass(frozen=True)
class ByLot(Policy):
    """A policy of somebody else's."""

    name = "by-lot"

    def _log_probabilities(self, problem):
        return np.full(problem.utilities.shape, -np.log(problem.n_actions))


def own(adjacency=ANY, utilities=UTILITIES, prior=PRIOR, **given):
    return ps.DecisionProblem(utilities, prior, adjacency, **given)


CASES = {
    "printed alike": (own(), {"epsilons": [0.1234567891, 1.0, 0.1234567892]}, set()),
    "a policy of one's own": (own(), {"policies": [ByLot()], "epsilons": 1.0}, set()),
    "no private policy": (own(), {"policies": ["uniform"], "epsilons": [1.0]}, set()),
    "no privacy at all": (own(), {"policies": ["optimal"], "epsilons": [np.inf]}, set()),
    "everything hidden": (own(), {"policies": ["optimal"], "epsilons": 0}, set()),
    "from nothing to all": (own(outcomes=OUTCOMES, lead="death"), {"epsilons": [0, 1.0, np.inf]}, {"frontier"}),
    "some are hidden, no names": (own(ILL), {"epsilons": [1.0, 2.0]}, set()),
    "one feature": (own(ps.OneFeature(SPACE.shape), records=SPACE), {"epsilons": [1.0, 2.0]}, {"beliefs"}),
    "no lead": (own(outcomes={"pain": OUTCOMES["pain"]}), {"epsilons": [1.0]}, set()),
    "nobody dies": (own(outcomes={"death": np.zeros((12, 3))}, lead="death"), {"epsilons": [1.0]}, set()),
    "a mask": (
        own(ILL, records=SPACE, outcomes=OUTCOMES, lead="death", admissible=MASK),
        {"epsilons": [1.0, 2.0]},
        {"beliefs", "frontier"},
    ),
    "nothing to gain": (own(utilities=np.ones((12, 3))), {"epsilons": [1.0]}, set()),
    "records that nobody has": (
        own(prior=np.r_[np.zeros(6), np.full(6, 1 / 6)], records=SPACE, outcomes=OUTCOMES, lead="death"),
        {"epsilons": [1.0, 2.0]},
        {"beliefs", "frontier"},
    ),
}


# Where exponential-fitted is not compared, or has no floors that are the same for all records of a class.
WITHOUT_BOX = {
    "a policy of one's own",
    "no private policy",
    "no privacy at all",
    "everything hidden",
    "one feature",
    "a mask",
}


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("blank_drawings")
@pytest.mark.parametrize("name", CASES)
def test_any_problem_has_a_report_and_a_page(name, tmp_path):
    problem, asked, more = CASES[name]
    report = ps.report(problem, **asked)
    floors = set() if name in WITHOUT_BOX else {"floors"}
    assert set(report.tables) - {"observer", "ways"} == ALWAYS | more | floors
    assert "observer" not in report.tables or "beliefs" in more
    assert all(report.figures[name] is not None for name in report.figures)
    assert all(name in repr(report) for name in (*report.tables, *report.figures))
    page = report.save(tmp_path / "saved").read_text(encoding="utf-8")
    for seen in (page, report._repr_html_()):
        assert seen.count("</dd>") >= 6
        assert "nan" not in re.sub(r"<(style|script)\b.*?</\1>|<[^>]*>", "", seen, flags=re.DOTALL).split()
    assert breaks(page) == []
    lines = screen(report._answer.options, "decision").splitlines()
    assert len(lines) <= 26
    assert max(map(len, lines)) <= 100


def test_its_comparison_is_that_of_compare_in_the_digits_of_files():
    problem = own(records=SPACE, outcomes=OUTCOMES, lead="death")
    asked = {"policies": ["exponential", "optimal"], "epsilons": [0.5, 1.0]}
    report = ps.report(problem, **asked)
    compared = ps.compare(problem, **asked)
    mine = report.tables["comparison"]
    mine = mine[mine["policy"].isin(asked["policies"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(mine, compared, rtol=1e-6, atol=1e-12)
    method = report.tables["method"].set_index("row")["value"]
    assert method["sensitivity"] == pytest.approx(problem.sensitivity.value)
    assert method["records"] == problem.n_records


def test_the_floors_of_a_report_are_those_between_which_all_odds_lie():
    problem = own(ILL, utilities=np.random.default_rng(1).normal(size=(12, 3)), records=SPACE)
    floors = ps.report(problem, policies=["exponential-fitted"], epsilons=[1.0, 2.0]).tables["floors"]
    table = ps.make_policy("exponential-fitted", epsilon=1.0).probabilities(problem)
    classes = {
        name: np.array(labels)[codes] for name, (codes, labels) in ((n, SPACE.groups(n)) for n in ("age", "sex"))
    }
    assert len(floors) == 3 * 2 * 3
    for (age, sex), rows in floors.groupby(["age", "sex"]):
        odds = table[(classes["age"] == age) & (classes["sex"] == sex)]
        low, high = rows["floor"].to_numpy(), rows["ceiling"].to_numpy()
        assert (low <= odds + 1e-8).all() and (odds <= high + 1e-8).all()
        assert high == pytest.approx(np.minimum(np.e * low, 1.0), rel=1e-6) and low.sum() <= 1 <= high.sum() + 1e-8


def test_a_figure_is_drawn_for_a_page_and_once():
    report = ps.report(own(), policies=["exponential", "optimal"], epsilons=[0.5, 1.0, 2.0])
    figure = report.figures["frontier"]
    assert figure is report.figures["frontier"]
    assert figure.axes
    with pytest.raises(KeyError):
        _ = report.figures["nothing"]


@pytest.mark.parametrize("better", [True, False])
def test_figures_show_shares_of_the_benefit_only_where_they_may_be_said(better, monkeypatch):
    verdict = "better" if better else "not better"
    monkeypatch.setattr(
        "policysim.decision.decision_answer.as_stated", lambda *given: as_stated(*given).assign(verdict=verdict)
    )
    report = ps.report(own(outcomes=OUTCOMES, lead="death"), policies=["exponential", "optimal"], epsilons=[0.5, 1.0])
    assert ("benefit-vs-lead" in report.figures) == better
    labels = [axis.get_ylabel() for axis in report.figures["frontier"].axes[0].child_axes]
    assert ("benefit kept" in labels) == better


def test_of_a_study_it_is_the_answer_of_compare(tmp_path):
    path = write_small_study(tmp_path)
    study = ps.load_study(path)
    answer = DecisionQuestion.of(study, {"epsilons": [1.0]}).answer(SILENT)
    for of in (study, str(path)):
        report = ps.report(of, epsilons=[1.0])
        assert list(report.tables) == list(written_tables(answer))
        for name, table in answer.tables.items():
            pd.testing.assert_frame_equal(report.tables[name], table)
        assert [*report.figures] == [drawing.name for drawing in answer.drawings]


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
        ps.report(own(), **given)


@pytest.mark.parametrize("of", [None, np.ones((2, 2)), 7])
def test_what_is_no_problem_and_no_study_is_refused_in_one_line(of):
    with pytest.raises(ValueError, match="report takes a DecisionProblem, a study, its name or the path of its file"):
        ps.report(of)


def test_a_study_takes_names_of_policies():
    with pytest.raises(ValueError, match="policies of a study are names from the catalogue, got"):
        ps.report("covid", policies=[ps.make_policy("optimal")])
