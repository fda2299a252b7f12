"""Which epsilon, which mechanism: against closed forms, brute force over epsilon, and an independent proof checker."""

import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from check_certificate import proven_bound
from proofs_by_hand import problem_json
from small_studies import write_small_study
from small_trials import OF_EXAMPLE

import policysim as ps
from policies.optimal.bounds import InfeasibleError
from policysim.cli.main import main
from policysim.decision.choose import Verdict, Wish, choose, rows_of
from policysim.decision.demands import make_demand
from policysim.decision.limit import Limit
from policysim.numbers import next_below

# Two records with opposite best actions: k-ary response is the optimum, and keep = 2p - 1.
SYMMETRIC = ps.DecisionProblem(
    [[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], ps.AnyRecord(), outcomes={"death": [[0.0, 0.1], [0.1, 0.0]]}, lead="death"
)


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return ps.build_problem(ps.load_study(write_small_study(tmp_path_factory.mktemp("study"))))


def test_each_policy_gets_its_least_epsilon_and_the_limit_is_one_of_them():
    choices = choose(SYMMETRIC, Wish(keep=0.8), ["exponential", "randomized-response", "optimal"])
    needs = dict(zip(choices.needs["policy"], choices.needs["epsilon"], strict=True))
    # log 9 = 2.197 and 2 log 9 = 4.394, rounded up.
    assert needs == {"randomized-response": 2.2, "exponential": 4.4, "optimal": 2.2}
    assert choices.limit == pytest.approx(math.log(9), rel=1e-4)
    assert choices.needs["epsilon"].tolist() == sorted(needs.values())
    least = choices.least
    assert least["benefit_kept"] >= 0.8 - 1e-12
    assert least["right_guesses"] == pytest.approx(1 / (1 + math.exp(-2.2)), rel=1e-12)


@pytest.mark.parametrize(
    "wish", [Wish(keep=0.0, max_guess=0.5), Wish(keep=0.0, max_guess_rate=0.5), Wish(max_loss=1.0)], ids=str
)
def test_one_treatment_for_all_that_is_enough_needs_less_than_any_mechanism(wish):
    choices = choose(SYMMETRIC, wish, ["randomized-response"])
    least = choices.least
    assert (least["policy"], least["epsilon"]) == ("best-fixed", 0.0)
    assert least["right_guesses"] == least["guess_rate"] == 0.5
    assert least["benefit_kept"] == 0
    # Either action is fatal to one of two with probability 0.1.
    assert least["expected_death"] == pytest.approx(0.05)
    assert choices.verdict is Verdict.CAN
    assert choices.certificate is None


def test_one_treatment_for_all_that_is_not_enough_is_not_chosen():
    for wish in (Wish(keep=1e-6), Wish(keep=0.0, max_extra_lead=-0.001)):
        assert not choose(SYMMETRIC, wish, ["randomized-response"]).for_all["allowed"].any()


def test_a_limit_on_guesses_is_a_limit_on_epsilon():
    assert Wish(max_guess=0.65).max_epsilon == pytest.approx(math.log(0.65 / 0.35))
    assert Wish(max_guess=0.5).max_epsilon == 0
    assert Wish(max_guess=1.0).max_epsilon == math.inf
    choices = choose(SYMMETRIC, Wish(keep=0.8, max_guess=0.65), ["randomized-response"])
    assert choices.verdict is Verdict.CANNOT
    assert choices.least is None
    assert not choices.needs["allowed"].any()


def test_two_demands_that_can_be_met_alone_may_exclude_each_other():
    # Action 0 is worth most, action 1 saves lives; blind, each demand alone is met by one action for all.
    problem = ps.DecisionProblem(
        [[1.0, 0.0], [1.0, 0.0]], [0.5, 0.5], ps.AnyRecord(), outcomes={"death": [[0.1, 0.0], [0.1, 0.0]]}, lead="death"
    )
    value, saved = make_demand(problem, max_loss=0.5), make_demand(problem, max_extra_lead=-0.08)
    assert Limit(problem, value).last_impossible() == 0
    assert Limit(problem, saved).last_impossible() == 0
    both = Limit(problem, make_demand(problem, max_loss=0.5, max_extra_lead=-0.08))
    assert both.last_impossible() == math.inf
    assert proven_bound(json.dumps(both.certificate(1.0))) > both.certificate(1.0)["allowed"]


def rising_and_falling():
    """A problem where the guess rate of the exponential mechanism rises and falls, with its rate and value by hand.

    Of two public classes each has one best action, so that without privacy nothing is left to guess; in between, the
    record with more at stake gets it more often.
    """
    utilities = [[1.0, 0.9], [1.0, 0.0], [0.9, 1.0], [0.0, 1.0]]
    problem = ps.DecisionProblem(utilities, np.full(4, 0.25), ps.Sensitive((2, 2), (1,)))

    def by_hand(epsilon):
        # Delta is 0.9, the difference of an action's utility within a class.
        much, little = (1 / (1 + np.exp(-epsilon * stake / 1.8)) for stake in (1.0, 0.1))
        value = (much + little + 0.9 * (1 - little)) / 2
        return (1 + much - little) / 2, (value - 0.725) / 0.275

    return problem, by_hand


def test_a_guess_rate_that_rises_and_falls_is_found_where_it_is_low_enough():
    problem, by_hand = rising_and_falling()
    wish = Wish(keep=0.7, max_guess_rate=0.6)
    grid = np.geomspace(0.01, 200, 40_001)
    rates, kept = by_hand(grid)
    (row,) = rows_of(choose(problem, wish, ["exponential"]).needs)
    assert row["allowed"]
    # The first number of two digits at which both hold.
    first = grid[(kept >= 0.7) & (rates <= 0.6)][0]
    assert next_below(row["epsilon"]) < first <= row["epsilon"] < 100
    assert row["guess_rate"] == pytest.approx(by_hand(row["epsilon"])[0], rel=1e-12)
    assert row["guess_rate"] <= 0.6 < row["right_guesses"] == pytest.approx(1 / (1 + math.exp(-row["epsilon"])))
    # A search that ends at the least epsilon that keeps enough would miss it.
    least = ps.smallest_epsilon(problem, "exponential", keep=0.7)
    assert least == pytest.approx(grid[kept >= 0.7][0], rel=1e-3)
    assert by_hand(least)[0] > 0.65
    assert row["epsilon"] > 5 * least


def test_where_no_epsilon_has_a_low_enough_guess_rate_none_is_chosen_and_nothing_is_said_to_be_impossible():
    choices = choose(SYMMETRIC, Wish(keep=0.8, max_guess_rate=0.85), ["randomized-response"])
    (row,) = rows_of(choices.needs)
    assert (row["epsilon"], row["guess_rate"]) == (2.2, pytest.approx(1 / (1 + math.exp(-2.2)), rel=1e-12))
    assert not row["allowed"]
    assert choices.least is None
    assert choices.certificate is None
    assert choices.verdict is Verdict.MAY


def test_a_guess_rate_joins_a_limit_on_every_guess():
    problem, _ = rising_and_falling()
    (row,) = rows_of(choose(problem, Wish(keep=0.7, max_guess=0.99, max_guess_rate=0.6), ["exponential"]).needs)
    # What the guess rate takes is more than the limit on epsilon allows.
    assert not row["allowed"]
    assert row["epsilon"] <= math.log(99)
    (row,) = rows_of(choose(problem, Wish(keep=0.7, max_guess=0.99, max_guess_rate=0.7), ["exponential"]).needs)
    assert row["allowed"]


def test_a_guess_rate_that_takes_too_long_is_refused_where_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(sys.modules["policies.privacy_loss"], "MOST_STEPS", 1)
    assert choose(SYMMETRIC, Wish(keep=0.8), ["optimal"]).needs["guess_rate"].isna().all()
    with pytest.raises(ValueError, match="guess_rate of 2 actions for 2 records"):
        choose(SYMMETRIC, Wish(keep=0.8, max_guess_rate=0.9), ["optimal"])


def run(capsys, *arguments):
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def study(tmp_path):
    return str(write_small_study(tmp_path / "study"))


def test_the_command_writes_a_certificate_where_no_mechanism_can(capsys, study, tmp_path):
    arguments = ("choose", study, "--keep", "0.9", "--max-guess", "55%", "--out", str(tmp_path / "out"))
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (4, "")
    assert "Not possible The other demands take more than ε = " in " ".join(out.split())
    problem = ps.build_problem(ps.load_study(study))
    proof = (tmp_path / "out" / "certificate.json").read_text()
    assert json.loads(proof)["problem"] == problem.digest
    assert proven_bound(proof, problem_json(problem)) > 0
    code, out, _ = run(capsys, *arguments, "--json")
    details = json.loads(out)["details"]
    assert code == 4
    assert details["possible"] is False
    assert details["certificate"]["groups"]


def test_more_than_is_possible_without_privacy_is_proven_at_every_epsilon(capsys, study, tmp_path):
    out = str(tmp_path / "out")
    code, text, _ = run(capsys, "choose", study, "--keep", "99%", "--max-extra-lead=-100000", "--out", out)
    assert code == 4
    assert "No mechanism meets the demands, even one that hides nothing." in text
    proof = (tmp_path / "out" / "certificate.json").read_text()
    assert json.loads(proof)["epsilon"] == "inf"
    problem = problem_json(ps.build_problem(ps.load_study(study)))
    assert proven_bound(proof, problem) > json.loads(proof)["allowed"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "choose needs at least one of --keep, --max-loss, --max-extra-lead and --at-most"),
        (["--keep", "most"], "--keep must be a number, got 'most'"),
        (["--keep", "0.8", "--policy", "greedy"], "greedy has no ε to choose"),
        (["--keep", "nan"], "--keep must be a number, got 'nan'"),
        (["--keep", "0.8", "--max-guess", "40%"], "--max-guess must be between 50% (blind) and 100%, got '40%'"),
        (["--keep", "0.8", "--max-guess-rate", "1.2"], "--max-guess-rate must be between 50% (blind) and 100%"),
        (["--max-guess-rate", "0.7"], "choose needs at least one of --keep, --max-loss, --max-extra-lead and"),
        (["--keep", "0.8", "--policy", "optimum"], "unknown policy 'optimum'; did you mean 'optimal'"),
        (["--at-most", "deths=1"], "--at-most: unknown outcome 'deths'; did you mean 'death'? known: death, symptoms"),
        (["--at-most", "death"], "--at-most must be OUTCOME=NUMBER per patient, or OUTCOME=one-for-all, got 'death'"),
        (["--at-most", "death=inf"], "--at-most must be OUTCOME=NUMBER per patient, or OUTCOME=one-for-all, got"),
        (["--at-most", "death=1", "--at-most", "death=1"], "--at-most names 'death' twice"),
    ],
)
def test_a_bad_wish_is_one_line_and_exit_two(capsys, study, options, message):
    code, out, err = run(capsys, "choose", study, *options)
    assert (code, out) == (2, "")
    assert err.splitlines()[0].startswith("policysim: ")
    assert message in err


def test_bounds_that_nobody_can_keep_are_named_with_what_is_possible(capsys, study, problem, tmp_path):
    options = ("--at-most", "death=0.001,symptoms=one-for-all", "--out", str(tmp_path / "out"))
    code, text, err = run(capsys, "choose", study, *options)
    assert (code, err) == (4, "")
    words = " ".join(text.split())
    assert "deaths ≤ 0.001 per patient" in words and "symptoms ≤ as with " in words
    fewest = problem.prior @ problem.outcomes["death"].min(axis=1)
    said = re.search(r"At least ([\d.]+) deaths per patient are unavoidable\.", words)
    assert fewest * (1 - 1e-4) <= float(said.group(1)) <= fewest
    proof = (tmp_path / "out" / "certificate.json").read_text()
    assert json.loads(proof)["demanded"]["death"] == pytest.approx(0.001)
    assert proven_bound(proof) > json.loads(proof)["allowed"]


def test_deaths_that_fall_and_rise_with_epsilon_are_found_where_they_are_few():
    utilities = [[0.36, -1.16, -1.0], [1.3, 0.15, 0.85], [-0.61, 1.38, 0.35]]
    deaths = [[0.093, 0.02, 0.056], [0.06, 0.086, 0.047], [0.083, 0.052, 0.096]]
    problem = ps.DecisionProblem(
        utilities, [0.5, 0.3, 0.2], ps.AnyRecord(), outcomes={"death": np.array(deaths)}, lead="death"
    )
    wish = Wish(keep=-5.0, max_extra_lead=-0.0087)
    demand = wish.demand(problem)
    # The optimum over several priors, of which there is but one, is the optimum, and not searched within the bounds.
    template = ps.make_policy("optimal", priors=[problem.prior])
    tables = [ps.make_policy("optimal", epsilon=epsilon).probabilities(problem) for epsilon in (0.01, 1.4, 9)]
    assert [demand.margin(problem, table) >= 0 for table in tables] == [False, True, False]
    (row,) = rows_of(choose(problem, wish, [template]).needs)
    assert row["allowed"] and row["epsilon"] < 1.4
    least = ps.smallest_epsilon(problem, template, keep=-5.0, max_extra_lead=-0.0087)
    assert next_below(row["epsilon"]) < least <= row["epsilon"]
    # Within the bounds it is never later, and no mechanism is earlier.
    found = choose(problem, wish, ["optimal"])
    assert found.limit <= found.needs["epsilon"].iloc[0] <= row["epsilon"]


@pytest.mark.parametrize("most", [{"death": 0.0122}, {"symptoms": "one for all", "death": 0.012}], ids=str)
def test_bounds_hold_for_what_is_chosen_and_the_optimum_is_that_within_them(problem, most):
    wish = Wish(keep=0.4, at_most=most)
    choices = choose(problem, wish, ["optimal", "randomized-response", "exponential"])
    demand = wish.demand(problem)
    fixed = problem.prior @ problem.outcomes["symptoms"][:, problem.best_fixed_action]
    limits = {name: fixed if limit == "one for all" else limit for name, limit in most.items()}
    assert demand.at_most == pytest.approx(limits, rel=1e-12)
    needs = {row["policy"]: row for row in rows_of(choices.needs)}
    for name, row in needs.items():
        bounds = {"at_most": limits} if name == "optimal" else {}
        for epsilon, enough in ((row["epsilon"], True), (next_below(row["epsilon"]), False)):
            try:
                table = ps.make_policy(name, epsilon=epsilon, **bounds).probabilities(problem)
            except InfeasibleError:
                assert not enough
                continue
            expected = {o: (problem.prior[:, None] * table * problem.outcomes[o]).sum() for o in limits}
            meets = problem.value(table) >= demand.value and all(expected[o] <= limits[o] + 1e-9 for o in limits)
            assert meets == enough, (name, epsilon)
    # No mechanism can below, and the optimum within the bounds does it there.
    least = ps.smallest_epsilon(problem, "optimal", keep=0.4, at_most=most)
    assert choices.limit <= least <= choices.limit * (1 + 2e-4)
    assert choices.attains(needs["optimal"]["epsilon"])
    assert next_below(needs["optimal"]["epsilon"]) < least <= needs["optimal"]["epsilon"]
    assert needs["optimal"]["epsilon"] == min(row["epsilon"] for row in rows_of(choices.needs))


def test_any_treatment_for_all_that_does_it_is_chosen_before_a_mechanism():
    deaths = np.array([[0.0, 0.01, 0.0], [0.01, 0.0, 0.0]])
    problem = ps.DecisionProblem(
        [[1, 0, 0.2], [0, 0.9, 0.2]], [0.6, 0.4], ps.AnyRecord(), outcomes={"death": deaths}, lead="death"
    )
    found = choose(problem, Wish(max_extra_lead=-0.0035), ["optimal"])
    assert problem.actions[problem.best_fixed_action] == "a0"
    assert found.least["actions"] == ("a2",)
    assert found.least["expected_death"] == 0


@pytest.mark.parametrize(("own", "asked", "kept"), [(0.8, 0.5, 0.5), (0.3, 0.5, 0.3), ("one for all", 0.5, 0.5)])
def test_optimal_safe_is_made_within_its_own_bounds_and_those_that_are_asked_for(own, asked, kept):
    """Whoever is treated gains 1 and bleeds: as many are treated as the tighter bound allows, at any ε."""
    bleeding = {"bleeding": np.array([[0.0, 1.0], [0.0, 1.0]])}
    problem = ps.DecisionProblem([[0.0, 1.0], [0.0, 1.0]], [0.5, 0.5], ps.AnyRecord(), outcomes=bleeding)
    safe = ps.make_policy("optimal-safe", at_most={"bleeding": own}, capacity={"a1": 0.9})
    (row,) = rows_of(choose(problem, Wish(at_most={"bleeding": asked}), [safe]).needs)
    assert (row["epsilon"], row["allowed"]) == (0, True)
    assert (row["expected_bleeding"], row["value"]) == pytest.approx((kept, kept), abs=1e-9)
    assert ps.smallest_epsilon(problem, safe, at_most={"bleeding": asked}) == 0


def test_what_only_no_privacy_does_is_found_at_no_epsilon():
    problem = ps.DecisionProblem(np.eye(2), [0.5, 0.5], ps.AnyRecord())
    found = choose(problem, Wish(keep=1.0), ["optimal", "randomized-response"])
    assert found.least is None
    assert [row["epsilon"] for row in rows_of(found.needs)] == [math.inf, math.inf]


def test_a_log_has_no_outcomes_to_bound(capsys, tmp_path):
    (tmp_path / "trial.csv").write_bytes((Path(__file__).parents[3] / "examples" / "trial.csv").read_bytes())
    assert main(["init", str(tmp_path / "trial.csv"), *OF_EXAMPLE]) == 0
    study = str(tmp_path / "trial.toml")
    for command in ("choose", "compare"):
        capsys.readouterr()
        code, out, err = run(capsys, command, study, "--at-most", "death=1")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "--at-most bounds costs in a log: its study needs [utility] costs, such as { pill = 0.1 }" in err
