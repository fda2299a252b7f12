"""A decision in which some patients must not get some treatments: every number counts what is allowed alone."""

import math
from dataclasses import replace

import numpy as np
import pytest
from full_programme import full_value
from random_problems import LOOK_FURTHER, neighbour_pairs
from small_studies import STUDY, write_small_study

import policysim as ps
from policies import CATALOGUE, AnyRecord, DecisionProblem, make_policy
from policies.policy import Policy
from policysim.decision import redraws
from policysim.decision.audit import audit
from policysim.decision.beliefs import beliefs
from policysim.decision.choose import Verdict, Wish, choose, rows_of
from policysim.decision.demands import expected_loss
from policysim.decision.evidence import gather
from policysim.decision.find import find
from policysim.decision.frontier import frontier
from policysim.decision.prices import price_list, unused_features
from policysim.decision.scenario_outcomes import loss_by_outcome
from policysim.numbers import next_below
from policysim.study.checks import checked_tables
from policysim.study.example_patients import loss_quantiles
from policysim.study.gain import best_fixed_loss, by_lot_loss, gain_of
from policysim.study.labels import labels_of

HIDDEN = ["infected", "fever", "cough", "smoker"]
SENSITIVE = STUDY.replace('adjacency = "any-record"', f'adjacency = "sensitive"\nsensitive = {HIDDEN}')


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return ps.load_study(write_small_study(tmp_path_factory.mktemp("small"), SENSITIVE))


@pytest.fixture(scope="module")
def problem(study):
    """The small study, where the old must not get the syrup, and the young nothing at all but the others."""
    return masked(ps.build_problem(study), study.space)


def masked(plain, space, forbidden=None):
    old = plain.records.groups("age")[0] == 1
    mask = np.ones(plain.utilities.shape, dtype=bool)
    mask[old, 1] = False
    junk = np.where(mask, 0.0, np.random.default_rng(forbidden).normal(size=mask.shape) * 1e3 if forbidden else 0.0)
    outcomes = {name: table + np.abs(junk) for name, table in plain.outcomes.items()}
    return DecisionProblem(
        plain.utilities + junk,
        plain.prior,
        plain.adjacency,
        plain.actions,
        records=space,
        outcomes=outcomes,
        priors=dict(plain.priors),
        admissible=mask,
        lead=plain.lead,
    )


def by_hand(problem, table):
    """Utilities with what is forbidden left out, whatever the problem holds there."""
    return float((problem.prior[:, None] * np.where(problem.admissible, table, 0)).sum())


def loss_by_pairs(table, pairs):
    """max log ratio over pairs of neighbours; an action of which both are 0 says nothing."""
    ratios = [(p, q) for x, y in pairs for p, q in zip(table[x], table[y], strict=True) if p > 0]
    return max(math.inf if q == 0 else math.log(p / q) for p, q in ratios)


def test_the_comparison_is_that_of_sums_over_what_is_allowed(problem):
    policies = [name for name in CATALOGUE if name not in LOOK_FURTHER]
    table = ps.compare(problem, policies=policies, epsilons=[0.5, 2.0], by=["age", "infected"])
    utilities, mask = np.where(problem.admissible, problem.utilities, np.nan), problem.admissible
    best, lot = np.nanmax(utilities, axis=1), np.nanmean(utilities, axis=1)
    ages, _ = problem.records.groups("age")
    fixed = sum(np.max(problem.prior[ages == a] @ problem.utilities[ages == a][:, mask[ages == a][0]]) for a in (0, 1))
    overall = table[table["group"] == "all"]
    for row in overall.to_dict("records"):
        chances = make_policy(row["policy"], epsilon=row["epsilon"]).probabilities(problem)
        value = by_hand(problem, chances * problem.utilities)
        assert row["value"] == pytest.approx(value, abs=1e-12)
        assert row["loss"] == pytest.approx(problem.prior @ best - value, abs=1e-12)
        assert row["benefit_kept"] == pytest.approx((value - fixed) / (problem.prior @ best - fixed), abs=1e-9)
        assert row["normalized_loss"] == pytest.approx(
            (problem.prior @ best - value) / (problem.prior @ (best - lot)), abs=1e-9
        )
        assert row["expected_death"] == pytest.approx(by_hand(problem, chances * problem.outcomes["death"]), abs=1e-14)
        pairs = neighbour_pairs(problem.adjacency, problem.n_records)
        assert row["epsilon_spent"] == pytest.approx(loss_by_pairs(chances, pairs), abs=1e-9)
        variation = max(np.abs(chances[x] - chances[y]).sum() for x, y in pairs) / 2
        assert row["guess_rate"] == pytest.approx((1 + variation) / 2, abs=1e-12)
    least = overall[overall["policy"] == "optimal"].set_index("epsilon")["least_loss"]
    for epsilon in (0.5, 2.0):
        assert problem.prior @ best - least[epsilon] == pytest.approx(full_value(problem, epsilon), abs=1e-7)
    assert (overall[overall["policy"] == "best-fixed"]["benefit_kept"].abs() < 1e-9).all()
    # Nobody who is old gets the syrup.
    assert (table[table["level"] == "old"]["p_syrup"] == 0).all()


def test_numbers_at_forbidden_pairs_change_nothing(study, problem):
    other = masked(ps.build_problem(study), study.space, forbidden=7)
    tables = [
        ps.compare(
            each, policies=["uniform", "exponential-fitted", "optimal", "optimal-safe"], epsilons=[1.0], by=["age"]
        )
        for each in (problem, other)
    ]
    assert tables[0].equals(tables[1])
    assert frontier(problem, [1.0]).equals(frontier(other, [1.0]))
    assert loss_quantiles(problem, ["uniform"], 1.0).equals(loss_quantiles(other, ["uniform"], 1.0))


def test_one_for_all_is_the_best_for_each_set_of_records_that_allow_the_same(problem):
    gain = gain_of(problem)
    ages, _ = problem.records.groups("age")
    values = [
        max(float(problem.prior[ages == age] @ problem.utilities[ages == age, a]) for a in actions)
        for age, actions in ((0, (0, 1, 2)), (1, (0, 2)))
    ]
    assert gain.fixed == pytest.approx(sum(values), abs=1e-14)
    assert float(best_fixed_loss(problem)) == pytest.approx(gain.best - gain.fixed, abs=1e-13)
    assert float(by_lot_loss(problem)) == pytest.approx(gain.best - gain.by_lot, abs=1e-13)
    lot = make_policy("uniform").probabilities(problem)
    assert expected_loss(problem, lot) == pytest.approx(gain.best - gain.by_lot, abs=1e-13)


def test_what_nobody_of_a_class_may_get_tells_nothing_of_it(problem):
    found = beliefs(problem, make_policy("exponential", epsilon=1.0).probabilities(problem), "infected")
    old = found["class"] == "age old"
    assert old.sum() == len(found) / 2
    assert found["after"].isna().equals(old & (found["action"] == "syrup"))


@pytest.mark.parametrize("keep", [0.2, 0.5])
def test_the_least_epsilon_is_just_enough_and_the_limit_is_proven(problem, keep):
    choices = choose(problem, Wish(keep=keep), ["randomized-response", "optimal"])
    gain = gain_of(problem)
    for row in rows_of(choices.needs):
        values = [
            problem.value(make_policy(row["policy"], epsilon=epsilon).probabilities(problem))
            for epsilon in (next_below(row["epsilon"]), row["epsilon"])
        ]
        assert gain.kept(values[0]) < keep <= gain.kept(values[1]) + 1e-9
    assert choices.limit_proven
    assert choices.attains(choices.needs["epsilon"].iloc[0])
    with_guesses = choose(problem, Wish(keep=0.99, max_guess=0.51), ["optimal"])
    assert with_guesses.verdict is Verdict.CANNOT
    assert with_guesses.certificate is not None


def test_bounds_and_the_safest_for_all_count_what_is_allowed(problem):
    deaths = problem.outcomes["death"]
    everybody = [make_policy("best-fixed", action=action).probabilities(problem) for action in range(3)]
    assert (everybody[1][~problem.admissible] == 0).all()
    least = min(by_hand(problem, table * deaths) for table in everybody)
    choices = choose(problem, Wish(keep=0.05, at_most={"death": "one for all"}), ["optimal"])
    assert choices.for_all["expected_death"].min() == pytest.approx(least, abs=1e-13)
    impossible = choose(problem, Wish(at_most={"death": 0.5 * least}, max_guess=0.6), ["optimal"])
    assert impossible.verdict is Verdict.CANNOT
    alone = -full_value(problem.with_utilities(-deaths), math.log(0.6 / 0.4))
    assert impossible.least_possible == {"death": pytest.approx(alone, rel=1e-6)}


def test_the_answer_counts_what_is_allowed(study, problem):
    asked = replace(study, by=("age",))
    evidence = gather(problem, labels_of(asked, problem), (), epsilon=1.0, epsilons=(1.0,), study=asked)
    options = find(evidence)[1.0].options.set_index("policy")
    deaths = options["expected_death"]
    best = np.where(problem.admissible, problem.utilities, -np.inf).argmax(axis=1)
    died = problem.outcomes["death"]
    assert deaths["greedy"] == pytest.approx(problem.prior @ died[np.arange(problem.n_records), best], abs=1e-15)
    one = make_policy("best-fixed").probabilities(problem)
    assert deaths["best-fixed"] == pytest.approx(by_hand(problem, one * died), abs=1e-15)
    # A treatment that some must not get is counted as what they get in its place.
    syrup = make_policy("best-fixed", action=1).probabilities(problem)
    assert deaths["for all: syrup"] == pytest.approx(by_hand(problem, syrup * died), abs=1e-15)
    # A gives each public class what has the fewest deaths of what it may get.
    ages = problem.records.groups("age")[0]
    least = [
        min(
            problem.prior[ages == age] @ died[ages == age, a]
            for a in range(3)
            if problem.admissible[ages == age, a].all()
        )
        for age in (0, 1)
    ]
    assert deaths["same-for-alike"] == pytest.approx(sum(least), abs=1e-14)


def test_what_decides_who_may_get_what_has_no_price_and_is_used(study, problem):
    prices = price_list(problem, study.epsilon)
    assert set(prices["hides"]) == {*HIDDEN, "all but age"}
    row = prices.set_index("hides").loc["all but age"]
    assert row["value"] == pytest.approx(full_value(problem, study.epsilon), abs=1e-7)
    assert (prices["epsilon_spent"].dropna() <= study.epsilon + 1e-12).all()
    assert "age" not in unused_features(problem, study.space.names)


class Careless(Policy):
    """The best of all treatments, by a look at the whole problem: a planted defect."""

    name = "careless"
    across_masks = True
    uses_epsilon = False

    def _log_probabilities(self, problem):
        with np.errstate(divide="ignore"):
            return np.log(np.tile(np.eye(problem.n_actions)[1], (problem.n_records, 1)))


class Foreign(Policy):
    """By lot; the policy of another package that knows of no mask."""

    name = "foreign"

    def _log_probabilities(self, problem):
        return np.full((problem.n_records, problem.n_actions), -math.log(problem.n_actions))


def test_what_a_policy_loses_outcome_by_outcome_is_its_loss(study, problem):
    policies = [make_policy("optimal", epsilon=1.0), make_policy("uniform")]
    rows = ps.compare(problem, policies=[*policies, "greedy"], epsilons=[1.0])
    table = loss_by_outcome(rows, study.weights, [policy.name for policy in policies])
    lost = table.groupby("policy")["lost"].sum()
    for policy in policies:
        assert lost[policy.name] == pytest.approx(expected_loss(problem, policy.probabilities(problem)), abs=1e-12)


def test_redraws_keep_to_the_mask(tmp_path, monkeypatch):
    asked = ps.load_study(write_small_study(tmp_path))
    plain = ps.build_problem(asked)
    mask = np.tile([True, False, True], (plain.n_records, 1))
    problem = DecisionProblem(
        plain.utilities, plain.prior, plain.adjacency, plain.actions, records=asked.space, admissible=mask
    )
    monkeypatch.setattr(redraws, "REDRAWS", 2)
    names = ("best-fixed", "randomized-response", "optimal")
    policies = [asked.policy(name, asked.epsilon) for name in names]
    # What nobody may get counts for nobody: the same two treatments alone are worth as much.
    two = DecisionProblem(plain.utilities[:, [0, 2]], plain.prior, plain.adjacency, ["none", "pill"])
    found, free = (redraws.redrawn(asked, each, policies).options for each in (problem, plain))
    values, without = (each.pivot(index="draw", columns="option", values="value") for each in (found, free))
    for action in ("none", "pill"):
        assert values[f"for all: {action}"].to_numpy() == pytest.approx(without[f"for all: {action}"].to_numpy())
    best = f"for all: {two.actions[two.best_fixed_action]}"
    assert values["best-fixed"].to_numpy() == pytest.approx(values["for all: syrup"].to_numpy())
    assert values["best-fixed"].to_numpy() == pytest.approx(values[best].to_numpy())


def test_a_policy_that_ignores_the_mask_is_caught(problem):
    with pytest.raises(ValueError, match=r"careless gives syrup to \[.*age.*\], who must not get it"):
        checked_tables(Careless(), problem)
    (found,) = audit(problem, [Careless()], [1.0])
    assert not found.holds
    assert "who must not get it" in found.fault
    (honest,) = audit(problem, [Foreign(1.0)], [1.0])
    assert honest.holds
    assert honest.exact == 0
    # Were it hidden who is old, a treatment that only the young get would give that away.
    assert ps.privacy_loss(make_policy("uniform").probabilities(problem), AnyRecord()).epsilon == math.inf
