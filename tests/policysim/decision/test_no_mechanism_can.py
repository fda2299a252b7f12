"""What is said to be possible or impossible, judged in rational numbers where the two meet."""

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from check_certificate import proven_bound
from exact_optimum import fixed_loss, least_loss
from full_programme import full_value
from small_studies import STUDY, write_small_study

import policysim as ps
import policysim.decision.choose
import policysim.decision.demands
from policies.adjacency import OneFeature, Sensitive
from policies.arrays import ROUNDING
from policies.optimal.certificate import optimal_certificate
from policies.proof import Certificate
from policysim.cli.main import main
from policysim.decision.choose import Verdict, Wish, choose
from policysim.decision.demands import make_demand
from policysim.decision.limit import Limit
from policysim.decision.report import report
from policysim.study.gain import prove_loss

# Limits on guessing. As a float, each is a rational number, and so is the e^epsilon that it allows, g / (1 - g).
GUESSES = (0.55, 0.625, 0.75, 0.9)
# How far from the exact boundary the demand is; 0 stands for the float next to it.
BESIDE = (0.0, 1e-9, -1e-9)


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    utilities = rng.integers(-8, 9, size=(n, k)) / 8 if seed % 2 else rng.normal(size=(n, k))
    utilities = utilities + float(rng.choice([0.0, 0.0, 1e6, 1e9, 1e12]))
    prior = rng.integers(1, 9, size=n).astype(float)
    return ps.DecisionProblem(utilities, prior / prior.sum(), ps.AnyRecord())


def boundary(problem, guess):
    """The exact shares of the benefit: what every mechanism loses at least, and one treatment for all."""
    table, prior = problem.utilities.tolist(), problem.prior.tolist()
    # The floats of a prior need not sum to 1; nothing here asks for it.
    return least_loss(table, prior, Fraction(guess) / (1 - Fraction(guess))), fixed_loss(table, prior)


def least_cost(problem, epsilon, costs, kept=()):
    """The least expectation of costs, (n_records, k), of an epsilon-private policy within limits; inf if none can."""
    value = full_value(problem.with_utilities(-costs), epsilon, kept)
    return math.inf if value is None else -value


def utility_lost(problem):
    """What each treatment loses of the best for its record, (n_records, k)."""
    return problem.utilities.max(axis=1)[:, None] - problem.utilities


@pytest.mark.parametrize("part", range(4))
def test_at_the_exact_boundary_nothing_false_is_said(part, monkeypatch):
    # The verdict is on what is allowed; how exactly the least epsilon is searched for does not matter to it.
    for module in (policysim.decision.demands, policysim.decision.choose):
        monkeypatch.setattr(module, "TOLERANCE", 0.5)
    said = dict.fromkeys(Verdict, 0)
    for seed in range(75 * part, 75 * part + 15):
        problem, guess = random_problem(seed), GUESSES[part]
        least, fixed = boundary(problem, guess)
        if fixed == 0:
            continue
        keep = float(1 - least / fixed) + BESIDE[seed % 3]
        choices = choose(problem, Wish(keep=keep, max_guess=guess), ["optimal"])
        allowed = (1 - Fraction(keep)) * fixed
        said[choices.verdict] += 1
        # No false "cannot"; no false "can", but for the rounding of sums that a demand leaves room for.
        assert choices.verdict is not Verdict.CANNOT or least > allowed, seed
        assert choices.verdict is not Verdict.CAN or least <= allowed * (1 + Fraction(10 * ROUNDING)), seed
        if abs(BESIDE[seed % 3]) > 0 and 0 < keep < 1:
            # A billionth beside it there is an answer.
            assert choices.verdict in (Verdict.CAN, Verdict.CANNOT), seed
        if choices.certificate is not None:
            assert proven_bound(json.dumps(choices.certificate)) <= least
    assert said[Verdict.CAN] > 5
    assert said[Verdict.CANNOT] > 2


IDENTITY = ps.DecisionProblem([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], ps.AnyRecord())


@pytest.mark.parametrize("policy", ["randomized-response", "optimal"])
def test_what_k_ary_response_does_at_the_boundary_itself_is_not_called_impossible(policy):
    # Right with probability .9 = e^eps / (1 + e^eps) at ln 9: keeps 2 * .9 - 1 = .8, exactly what is asked for.
    choices = choose(IDENTITY, Wish(keep=0.8, max_guess=0.9), [policy])
    assert (choices.verdict, choices.certificate) == (Verdict.CAN, None)
    assert choices.least["epsilon"] == Wish(max_guess=0.9).max_epsilon
    assert choices.limit < math.log(9)
    # A mechanism that does less at the same epsilon leaves it open, and does not make it impossible.
    assert choose(IDENTITY, Wish(keep=0.8, max_guess=0.9), ["exponential"]).verdict is Verdict.MAY
    assert choose(IDENTITY, Wish(keep=0.8 + 1e-12, max_guess=0.9), [policy]).verdict is Verdict.CANNOT


@pytest.mark.parametrize("offset", [0.0, 1e9, 1e12])
def test_the_limit_is_below_what_a_mechanism_needs_and_proven_there(offset):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        problem = ps.DecisionProblem(rng.normal(size=(6, 3)) + offset, rng.dirichlet(np.ones(6)), ps.AnyRecord())
        demand = make_demand(problem, keep=0.7)
        limit = Limit(problem, demand)
        least = limit.last_impossible()
        assert least <= ps.smallest_epsilon(problem, "optimal", keep=0.7) <= least * (1 + 2e-4)
        assert proven_bound(json.dumps(limit.certificate(least))) > demand.loss
        assert limit.certificate(least * (1 + 2e-4)) is None


def test_deaths_alone_and_beside_utility_are_proven_in_the_same_way():
    rng = np.random.default_rng(4)
    problem = ps.DecisionProblem(
        rng.normal(size=(5, 3)) + 1e9,
        np.full(5, 0.2),
        ps.AnyRecord(),
        outcomes={"death": rng.random((5, 3)) / 10},
        lead="death",
    )
    for wish in ({"max_extra_lead": -0.015}, {"keep": 0.5, "max_extra_lead": -0.001}):
        demand = make_demand(problem, **wish)
        limit = Limit(problem, demand)
        least = limit.last_impossible()
        assert 0 < least < math.inf
        proof = limit.certificate(least)
        assert proven_bound(json.dumps(proof)) > proof["allowed"]
        # What a policy that meets the demand comes to in the objective is no more than what is allowed there.
        weights = limit.tightest(least)
        assert weights == proof["objective"]
        assert weights["death"] > 0
        costs = weights["death"] * problem.outcomes["death"]
        costs = costs + weights.get("utility lost", 0.0) * utility_lost(problem)
        tables = [np.eye(3)[list(actions)] for actions in product(range(3), repeat=5)]
        meeting = [table for table in tables if demand.margin(problem, table) >= 0]
        assert meeting
        for table in meeting:
            assert (problem.prior @ (table * costs)).sum() <= proof["allowed"] * (1 + 1e-14)


def test_a_comparison_says_what_is_proven_and_no_policy_loses_less(random_problems):
    for case in [case for case in random_problems if case.is_small][:48]:
        problem = case.problem
        # The tolerance of the programme, and the rounding of sums.
        room = 1e-9 * np.ptp(problem.utilities) + 1e-12 * np.abs(problem.utilities).max()
        table = ps.compare(problem, policies=["optimal", "exponential", "best-fixed"], epsilons=[case.epsilon])
        assert table.loc[table["policy"] != "optimal", ["least_loss", "most_kept"]].isna().all(axis=None)
        row = table.set_index("policy").loc["optimal"]
        greedy, fixed = (
            problem.value(ps.make_policy(name).probabilities(problem)) for name in ("greedy", "best-fixed")
        )
        least = greedy - full_value(problem, case.epsilon)
        assert row["least_loss"] <= least + room
        # Under one-feature all that is proven is what hiding one feature, or all together, costs.
        tight = not isinstance(problem.adjacency, OneFeature)
        assert row["least_loss"] >= (least - room if tight else 0)
        if not math.isnan(row["most_kept"]):
            assert row["most_kept"] == pytest.approx(1 - row["least_loss"] / (greedy - fixed), abs=1e-8)
            assert row["most_kept"] >= row["benefit_kept"] - 1e-8


@pytest.mark.parametrize(
    ("seed", "adjacency", "tight"),
    [
        (9, ps.AnyRecord(), True),
        (9, Sensitive((2, 3), (0,)), True),
        (9, OneFeature((2, 3)), False),
        (10, Sensitive((2, 3), (0,)), True),
    ],
    ids=str,
)
def test_the_limit_within_bounds_is_that_of_the_whole_programme(seed, adjacency, tight):
    rng = np.random.default_rng(seed)
    outcomes = {"death": rng.random((6, 3)) / 10, "symptoms": 3 * rng.random((6, 3))}
    problem = ps.DecisionProblem(rng.normal(size=(6, 3)), rng.dirichlet(np.ones(6)), adjacency, outcomes=outcomes)
    most = {}
    for name, table in outcomes.items():
        fewest = problem.prior @ table.min(axis=1)
        greedy = problem.prior @ table[np.arange(6), problem.best_actions]
        most[name] = fewest + rng.uniform(0.2, 1.1) * (greedy - fewest)
    demand = make_demand(problem, keep=rng.uniform(-0.5, 0.9), at_most=most)
    limit = Limit(problem, demand)
    least = limit.last_impossible()
    assert 0 < least < math.inf
    demanded = [(utility_lost(problem), demand.loss), *((outcomes[name], demand.kept[name]) for name in outcomes)]

    def possible(epsilon):
        return full_value(problem, epsilon, demanded) is not None

    assert not possible(least * 0.99)  # beyond the tolerance of the programme; at the limit itself it is proven
    assert possible(least * (1 + 2e-4)) or not tight
    proof = limit.certificate(least)
    assert proven_bound(json.dumps(proof)) > proof["allowed"]
    assert set(proof["objective"]) <= {"utility lost", "death", "symptoms"}
    for name, least_of_all in limit.least_possible(1.0).items():
        fewest = least_cost(problem, 1.0, outcomes[name])
        assert least_of_all <= fewest + 1e-9
        assert least_of_all >= fewest - 1e-7 or not tight


def test_what_counts_as_kept_is_never_proven_impossible():
    # Fewer deaths than any policy has, by half of what a bound may be exceeded by and still count as kept.
    for seed in range(6):
        rng = np.random.default_rng(seed)
        outcomes = {"death": rng.random((5, 3)) / 10}
        problem = ps.DecisionProblem(rng.normal(size=(5, 3)), np.full(5, 0.2), ps.AnyRecord(), outcomes=outcomes)
        fewest = optimal_certificate(problem, 1.0, {"death": 1.0}).bound
        most = fewest - policysim.decision.demands.KEPT / 2 * outcomes["death"].max()
        demand = make_demand(problem, at_most={"death": most})
        saver = problem.with_utilities(-outcomes["death"])
        table = ps.make_policy("optimal", epsilon=1.0).probabilities(saver)
        assert demand.margin(problem, table) >= 0
        assert Limit(problem, demand).certificate(1.0) is None


@pytest.mark.parametrize("offset", [0.0, 1e9, 1e12])
def test_what_is_proven_in_rationals_is_rounded_against_the_claim(offset):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        problem = ps.DecisionProblem(rng.normal(size=(4, 3)) + offset, rng.dirichlet(np.ones(4)), ps.AnyRecord())
        ratio = Fraction(3, 2)
        # Every policy for this epsilon is one for the ratio.
        proof = prove_loss(problem, math.nextafter(math.log(1.5), 0))
        least, fixed = (
            compute(problem.utilities.tolist(), problem.prior.tolist(), *more)
            for compute, more in ((least_loss, (ratio,)), (fixed_loss, ()))
        )
        assert Fraction(proof.least_loss) <= least * (1 + Fraction(1, 10**9))
        if not math.isnan(proof.most_kept):
            assert Fraction(proof.most_kept) >= 1 - Fraction(proof.least_loss) / fixed


def test_where_there_is_no_certificate_nothing_is_proven(monkeypatch):
    monkeypatch.setattr("policies.proof.MAX_ENTRIES", 5)
    rng = np.random.default_rng(2)
    problem = ps.DecisionProblem(rng.normal(size=(6, 2)), np.full(6, 1 / 6), Sensitive((2, 3), (0,)))
    table = ps.compare(problem, policies=["optimal"], epsilons=[1.0])
    assert table[["least_loss", "most_kept"]].isna().all(axis=None)
    # The optimum is too large, and so is its proof: a value that is reached, and no bound.
    monkeypatch.setattr("policies.optimal.whole_programme.MAX_ENTRIES", 11)
    monkeypatch.setattr(Certificate, "holds", lambda *_: False)
    one = ps.DecisionProblem(rng.normal(size=(6, 2)), np.full(6, 1 / 6), OneFeature((2, 3)))
    assert set(ps.compare(one, policies=["optimal"], epsilons=[1.0])["policy"]) == {"optimal-achievable"}


def test_a_comparison_claims_nothing_without_a_proof(tmp_path, monkeypatch):
    text = STUDY.partition("[compare]")[0].replace("[0.5, 1.0, 4.0]", "[1.0, 4.0]")
    text += '[compare]\npolicies = ["optimal"]\n'
    study = ps.load_study(write_small_study(tmp_path, text))

    def claims():
        """What is beyond every mechanism: in the tables, and what the screen says of B."""
        found = report(study)
        return bool(found.tables["comparison"]["least_loss"].notna().any()), found.findings.details.at_limit

    assert claims() == (True, True)
    rejecting(monkeypatch)
    assert claims() == (False, False)


def rejecting(monkeypatch):
    monkeypatch.setattr(Certificate, "holds", lambda *_: False)


@pytest.mark.parametrize("wish", [("--keep", "0.9", "--max-guess", "55%"), ("--keep", "99%", "--max-extra-lead=-1000")])
def test_screen_page_and_json_withhold_what_is_not_proven(wish, capsys, tmp_path, monkeypatch):
    study = str(write_small_study(tmp_path / "study"))
    rejecting(monkeypatch)
    arguments = ("choose", study, *wish, "--policy", "randomized-response", "--out", str(tmp_path / "out"))
    assert main(arguments) == 4
    screen = capsys.readouterr().out
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for text in (" ".join(screen.split()), " ".join(page.split())):
        assert "Whether another one can is not proved." in text
        assert "proved" not in text.replace("Whether another one can is not proved.", "")
    assert main([*arguments, "--json"]) == 4
    details = json.loads(capsys.readouterr().out)["details"]
    assert (details["verdict"], details["possible"], details["limit_proven"]) == ("none", None, False)
    assert details["certificate"] is None


def test_where_a_mechanism_does_it_an_unproven_limit_is_not_said(capsys, tmp_path, monkeypatch):
    study = str(write_small_study(tmp_path / "study"))
    rejecting(monkeypatch)
    assert main(["choose", study, "--keep", "80%", "--policy", "randomized-response"]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert "Choose B at ε = " in screen and "At ε = " in screen
    assert "proved" not in screen
