"""Off-policy estimates: python benchmarks/offpolicy.py; --coverage for docs/notes/off-policy-coverage.md.

--holes draws logs with and without a hole in overlap; --arms repeats the difference to one arm for all; --trials
repeats `policysim compare` on planted logs, and --verdicts STUDY on one study with other seeds.
"""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import policysim as ps
from envs.cohort import PatientSampler
from envs.treatment_response import ResponseModel
from policies.sampler import draw_actions
from policysim.logs.censoring import pseudo_outcomes
from policysim.logs.load_log import load_log
from policysim.logs.log_frame import LoggedData, Observed
from policysim.logs.outcome_models import FEWEST_ROWS, PENALTIES
from policysim.report.findings import verdict_of_interval
from policysim.trials.arms import difference_from_one_arm
from policysim.trials.estimate_value import CrossFit, cross_fit, estimate_value
from policysim.trials.evaluate_log import evaluate_log
from policysim.trials.evidence import heterogeneity
from policysim.trials.overlap import find_holes
from policysim.trials.trial_columns import compare_log

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from planted_logs import WORLDS, repeated

DOCUMENT = Path(__file__).parents[1] / "docs" / "notes" / "off-policy-coverage.md"
ROUNDS = 15
ESTIMATORS = ("ips", "snips", "dr")
SIZES = (100, 200, 500, 1000, 5000)
TOGETHER = 50  # logs that are drawn together
EPSILON = 2.0  # of the evaluated policy
LEAST, MOST, FROM = 93, 97, 200  # what is promised, per cent, and from which effective sample size


@dataclass(frozen=True)
class World:
    """Who comes, who treats them how, and what counts."""

    cohort: str  # "infected" or "everyone"
    by_lot: float  # the share of treatments drawn at random; the others follow the doctors' rule
    reward: str  # "well", "utility without death" or "utility"

    def __str__(self):
        """The heading of its table."""
        logged = "a randomised trial" if self.by_lot == 1 else f"doctors, {self.by_lot:.0%} at random"
        return f"{self.cohort}, {logged}, reward: {self.reward}"


KEPT = (
    World("infected", 1, "well"),
    World("infected", 0.5, "well"),
    World("everyone", 1, "well"),
    World("infected", 1, "utility without death"),
)
BEYOND = (
    World("everyone", 0.1, "well"),
    World("everyone", 1, "utility without death"),
    World("everyone", 1, "utility"),
)


@cache
def scenario():
    """The study, its response model and the utilities of its records for each reward."""
    study = ps.load_study("covid")
    harmless = replace(study.utility, weights={**study.utility.weights, "death": 0.0})
    response = ResponseModel(study.scenario)
    well = np.ones((study.scenario.space.size, len(study.scenario.actions)))
    for name in study.scenario.transient:
        well *= 1 - response.probability(name)
    utility = ps.build_problem(study)
    return study, response, {
        "utility": (utility, study.utility),
        "utility without death": (ps.build_problem(replace(study, utility=harmless)), harmless),
        "well": (ps.DecisionProblem(well, utility.prior, ps.AnyRecord()), None),
    }  # fmt: skip


@cache
def logging_policy(by_lot):
    """The doctors' rule, mixed with a lot: a3 for dangerous findings, a1 for the other infected, a2 for complaints."""
    space = scenario()[0].scenario.space
    codes = space.codes(np.arange(space.size))
    has = {name: codes[:, axis] == 1 for axis, name in enumerate(space.names)}
    danger = has["pneumonia"] | has["blood_clots"] | has["myocarditis"]
    complaint = has["fever"] | has["headache"] | has["stomach"]
    rule = np.select([danger, has["covid_positive"], complaint], [3, 1, 2], 0)
    return by_lot / 4 + (1 - by_lot) * np.eye(4)[rule]


@cache
def world_tables(world):
    """Who comes, the evaluated policy, the logging policy, the true value, and effective rows per row."""
    study, _, problems = scenario()
    evaluated = ps.make_policy("randomized-response", epsilon=EPSILON).probabilities(problems["utility"][0])
    problem, _ = problems[world.reward]
    prior = problem.prior
    if world.cohort == "infected":
        infected, _ = study.scenario.space.groups("covid_positive")
        prior = prior * infected / (prior @ infected)
    logging = logging_policy(world.by_lot)
    effective = 1 / float(prior @ (evaluated**2 / logging).sum(axis=1))  # E[w]^2 / E[w^2], E[w] = 1
    return PatientSampler.of(prior), evaluated, logging, problem.with_prior(prior).value(evaluated), effective


def covariates(records):
    """Level codes; age and vaccine as indicators."""
    space = scenario()[0].scenario.space
    codes = space.codes(records)
    wide = [codes[:, [space.axis(name)]] == np.arange(len(space.feature(name).levels)) for name in ("age", "vaccine")]
    flat = [axis for axis, levels in enumerate(space.shape) if levels == 2]
    return np.column_stack([codes[:, flat], *wide]).astype(float)


def draw_logs(world, n, how_many, rng):
    """Logs of n patients each, drawn together: the log, covariates and the evaluated policy for them."""
    study, response, problems = scenario()
    sampler, evaluated, logging, _, _ = world_tables(world)
    records = sampler.records(rng.random(n * how_many))
    actions = draw_actions(logging[records], rng)
    outcomes = response.sample(records, actions, rng)
    utility = problems[world.reward][1]
    if utility is None:
        rewards = (~outcomes[:, :-1].any(axis=1)).astype(float)
    else:
        rewards = utility.realized(study.scenario, outcomes, actions)
    for start in range(0, n * how_many, n):
        rows = slice(start, start + n)
        taken, own = actions[rows], records[rows]
        log = LoggedData(taken, rewards[rows], logging[own, taken], study.scenario.actions)
        yield log, covariates(own), evaluated[own]


def fast_cross_fit(log, x, seed, folds=5):
    """`cross_fit` with "linear", several times as fast: its leave-one-out errors come from one decomposition a fit."""
    fold_of = np.random.default_rng(seed).permutation(log.n_rows) % folds
    predictions = np.empty((log.n_rows, log.n_actions))
    for fold in range(folds):
        rest, own = fold_of != fold, fold_of == fold
        centre, spread = x[rest].mean(axis=0), x[rest].std(axis=0)
        scaled = (x - centre) / np.where(spread <= 1e-13 * np.abs(centre), 1, spread)
        for action in range(log.n_actions):
            rows = rest & (log.actions == action)
            r = log.rewards[rows]
            predictions[own, action] = r.mean() if len(r) else log.rewards[rest].mean()
            if len(r) >= FEWEST_ROWS and r.min() < r.max():
                middle = scaled[rows].mean(axis=0)
                predictions[own, action] += (scaled[own] - middle) @ ridge_slope(scaled[rows] - middle, r - r.mean())
    return CrossFit(x, fold_of, (), predictions, ())


def ridge_slope(x, r):
    """The slope of ridge regression for centred rows, its penalty that of least leave-one-out error."""
    values, vectors = np.linalg.eigh(x.T @ x)
    rotated = x @ vectors
    shrunk = 1 / (np.maximum(values, 0)[:, None] + np.array(PENALTIES))
    slopes = shrunk * (rotated.T @ r)[:, None]
    errors = (r[:, None] - rotated @ slopes) / (1 - 1 / len(r) - rotated**2 @ shrunk)
    return vectors @ slopes[:, (errors**2).sum(axis=0).argmin()]


def repeat(task):
    """Estimates from some logs of one world and size: a row (estimator, width, covered, ess, warned) each."""
    world, n, repetitions, seed = task
    truth = world_tables(world)[3]
    rows = []
    for log, known, evaluated in draw_logs(world, n, repetitions, np.random.default_rng(seed)):
        fitted = fast_cross_fit(log, known, len(rows))
        if not rows:
            np.testing.assert_allclose(fitted.predictions, cross_fit(log, known).predictions, rtol=1e-6, atol=1e-9)
        for name in ESTIMATORS:
            found = estimate_value(log, evaluated, estimator=name, fitted=fitted)
            low, high = found.interval
            warned = any(said.startswith("a few rows decide") for said in found.warnings)
            rows.append((name, high - low, low <= truth <= high, found.ess, warned))
    return pd.DataFrame(rows, columns=["estimator", "width", "covered", "ess", "warned"])


def coverage_line(pool, world, size, repetitions):
    """One line of a world's table: per cent covered and warned, and the width of DR's interval over that of IPS's."""
    n = round(size / world_tables(world)[4])
    seeds = np.random.SeedSequence([(*KEPT, *BEYOND).index(world), size]).spawn(repetitions // TOGETHER)
    rows = pd.concat(pool.map(repeat, [(world, n, TOGETHER, seed) for seed in seeds]))
    means = rows.groupby("estimator")[["width", "covered", "ess", "warned"]].mean()
    widths = means["width"]
    line = {"n": n, "ess": means.loc["ips", "ess"], "narrower": widths["dr"] / widths["ips"]}
    line |= {name: 100 * means.loc[name, "covered"] for name in ESTIMATORS}
    line |= {"warned": 100 * means.loc["dr", "warned"]}
    print(world, {key: round(float(value), 3) for key, value in line.items()}, flush=True)
    return line


def one_thread():
    """Each worker has one processor."""
    threadpool_limits(1)


def markdown(world, lines):
    """A world's table; coverage outside what is promised is bold."""
    out = [
        f"### {str(world)[0].upper()}{str(world)[1:]}",
        "",
        "| effective sample size | rows | IPS | SNIPS | DR | DR's width / IPS's | \"a few rows decide\" |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for line in lines:
        covers = [
            f"{line[name]:.1f}" if LEAST <= line[name] <= MOST else f"**{line[name]:.1f}**" for name in ESTIMATORS
        ]
        shown = [f"{line['ess']:,.0f}", f"{line['n']:,}", *covers, f"{line['narrower']:.2f}", f"{line['warned']:.1f}"]
        out.append(f"| {' | '.join(shown)} |")
    return "\n".join([*out, ""])


def holds(lines):
    """Whether the promise holds in a table: coverage, and DR's interval no wider than IPS's, from the size on."""
    large = [line for line in lines if line["ess"] >= FROM - 1]  # the mean of random sizes around FROM
    return all(line["narrower"] <= 1 and all(LEAST <= line[name] <= MOST for name in ESTIMATORS) for line in large)


def coverage(repetitions, workers):
    """Run everything and write the tables into the document, each between the two comments that name it."""
    with ProcessPoolExecutor(workers, initializer=one_thread) as pool:
        tables = {
            world: [coverage_line(pool, world, size, repetitions) for size in SIZES] for world in (*KEPT, *BEYOND)
        }
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, block in {
        "kept": "\n".join(markdown(world, tables[world]) for world in KEPT),
        "beyond": "\n".join(markdown(world, tables[world]) for world in BEYOND),
        "followed": followed(repetitions, workers),
        "trials": trials(repetitions, workers),
    }.items():
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        text = text[: text.index(start) + len(start)] + block + text[text.index(end) :]
    DOCUMENT.write_text(text, encoding="utf-8")
    if not all(holds(tables[world]) for world in KEPT):
        sys.exit("the promise does not hold in every table of the first part")


HOLES = {
    "none": lambda f: f["age"] > np.inf,
    "10 % by age": lambda f: f["age"] > f["age"].quantile(0.9),
    "21 % by age": lambda f: f["age"] > f["age"].quantile(0.79),
    "10 % by site and sex": lambda f: (f["site"] == "s2") & (f["sex"] == 1),
    "10 % by sex and age": lambda f: (f["sex"] == 1) & (f["age"] > f["age"].quantile(0.8)),
    "21 % by age and lab": lambda f: (f["age"] > f["age"].quantile(0.54)) & (f["lab"] > f["lab"].quantile(0.54)),
}
SHAPES = {  # the log odds of the third arm
    "equal odds": lambda f: 0 * f["age"],
    "by age": lambda f: f["age"],
    "steep, at least 5 %": lambda f: np.clip(1.5 * f["age"] + f["sex"] - 0.5, -2.25, 2.9),
    "by sex": lambda f: 2.8 * f["sex"] - 1.4,
    "by age and lab": lambda f: 0.8 * f["age"] + 0.5 * f["lab"] - 1,
    "to the ends": lambda f: np.clip(f["age"] ** 2 - 1, -2.2, 2.2),
}


def holes(draws, n=2000):
    """Print in how many of some logs of n patients a hole is named, for several shapes of overlap and three arms."""
    for hole, inside in HOLES.items():
        counts = {}
        for shape, score in SHAPES.items():
            counts[shape] = 0
            for seed in range(draws):
                rng = np.random.default_rng((seed, n))
                numbers = {"age": rng.normal(size=n), "lab": rng.gamma(2, size=n), "sex": rng.integers(2, size=n)}
                frame = pd.DataFrame(numbers).assign(site=[f"s{i}" for i in rng.integers(5, size=n)])
                odds = np.exp(score(frame).to_numpy())
                rows = inside(frame).to_numpy()
                odds[rows] = 0
                chances = np.column_stack([np.ones(n), np.ones(n), odds])
                cumulated = np.cumsum(chances / chances.sum(axis=1, keepdims=True), axis=1)
                actions = (rng.random(n)[:, None] >= cumulated).sum(axis=1).clip(0, 2)
                found = find_holes(LoggedData(actions, np.zeros(n), np.ones(n), ("a", "b", "c")), frame)
                right = [each for each in found if each.action == 2 and (each.rows & rows).sum() >= 0.8 * each.patients]
                counts[shape] += bool(found if hole == "none" else right)
        print(f"{hole:<24}", counts, flush=True)


ARMS = {  # how often each arm succeeds, and a policy that is as good as the best of them
    "4 equal arms": ((0.4,) * 4, (0.25,) * 4),
    "12 equal arms": ((0.4,) * 12, (1 / 12,) * 12),
    "two of 4 are best": ((0.4, 0.4, 0.05, 0.05), (0.5, 0.5, 0, 0)),
}


def repeat_arms(task):
    """The intervals of the difference to one arm for all in some randomised logs: a row (low, high) each."""
    kind, estimator, n, repetitions, seed = task
    rng = np.random.default_rng(seed)
    chances, policy = ARMS[kind]
    k, rows = len(chances), []
    for _ in range(repetitions):
        actions = rng.integers(k, size=n)
        rewards = (rng.random(n) < np.array(chances)[actions]).astype(float)
        log = LoggedData(actions, rewards, np.full(n, 1 / k), tuple("abcdefghijkl"[:k]))
        rows.append(difference_from_one_arm(log, np.tile(policy, (n, 1)), estimator=estimator).interval)
    return pd.DataFrame(rows, columns=["low", "high"])


def arms(repetitions, workers, n=500):
    """Print how often intervals hold a difference of 0 to the best arm, and how often they are above it, per cent."""
    print(f"| {n} patients, estimator | logs | covered | better falsely |\n|---|---:|---:|---:|")
    with ProcessPoolExecutor(workers, initializer=one_thread) as pool:
        for number, (kind, estimator) in enumerate((kind, name) for kind in ARMS for name in ("ips", "snips")):
            seeds = np.random.SeedSequence([23, number]).spawn(max(1, repetitions // TOGETHER))
            tasks = [(kind, estimator, n, min(TOGETHER, repetitions), seed) for seed in seeds]
            rows = pd.concat(pool.map(repeat_arms, tasks))
            covered, false = ((rows["low"] <= 0) & (rows["high"] >= 0)).mean(), (rows["low"] > 0).mean()
            print(f"| {kind}, {estimator} | {len(rows):,} | {100 * covered:.1f} | {100 * false:.1f} |", flush=True)


FOLLOWED = {  # the share censored, and the hazards of three arms up to the horizon 1 of a young patient who is not ill
    "20 % censored": (0.2, (0.8, 0.6, 0.5)),
    "40 % censored": (0.4, (0.8, 0.6, 0.5)),
    "rare events": (0.0, (0.06, 0.045, 0.03)),
    "rare events, 20 % censored": (0.2, (0.06, 0.045, 0.03)),
    "rare events, 40 % censored": (0.4, (0.06, 0.045, 0.03)),
}
RISKS = np.array([[1.0, 1.6], [0.8, 1.2]]) / 1.15  # of each: young or old, not ill or ill


def draw_followed(censored, hazards, n, rng):
    """A trial of three randomised arms with a horizon of 1: the log, covariates, and the share that is censored.

    The last arm is the best but for old patients who are ill, of whom it doubles the hazard; censoring is exponential,
    twice as fast in the first arm.
    """
    old, ill, actions = rng.integers(2, size=n), rng.integers(2, size=n), rng.permutation(n) % 3
    rates = RISKS[old, ill][:, None] * np.array(hazards)
    rates[:, 2] *= 1 + (old & ill)
    times = rng.exponential(1 / rates[np.arange(n), actions])
    # At rate c the share 1 - e^-c is censored before 1 were there no events; about so many are with few.
    rate = -np.log1p(-censored * (1.25 if hazards[0] > 0.5 else 1)) * np.array([1.5, 0.75, 0.75])[actions]
    ends = rng.exponential(1 / np.maximum(rate, 1e-9))
    until, happened = np.minimum(times, ends), times <= ends
    rewards, states, weights = np.zeros((3, n))
    for arm in range(3):
        rows = actions == arm
        rewards[rows], known = pseudo_outcomes(until[rows], happened[rows], 1.0)
        states[rows], weights[rows] = known.rewards, known.weights
    log = LoggedData(actions, rewards, np.full(n, 1 / 3), ("a", "b", "c"), Observed(states, weights))
    lost = (~happened & (until < 1)).mean()
    return log, np.column_stack([old, ill]).astype(float), lost


def repeat_followed(task):
    """Coverage of some trials of one kind: a row (policy, covered, width, censored) for each policy."""
    kind, n, repetitions, seed = task
    rng, rows = np.random.default_rng(seed), []
    for _ in range(repetitions):
        log, x, lost = draw_followed(*FOLLOWED[kind], n, rng)
        fitted = cross_fit(log, x, seed=len(rows))
        for name, policy in policies_of(x).items():
            low, high = estimate_value(log, policy, fitted=fitted).interval
            # The value to the population: all four kinds of patients are as many.
            cells = np.array([[a, b] for a in (0, 1) for b in (0, 1)], dtype=float)
            rates = RISKS[cells[:, 0].astype(int), cells[:, 1].astype(int)][:, None] * np.array(FOLLOWED[kind][1])
            rates[3, 2] *= 2
            value = (policies_of(cells)[name] * np.exp(-rates)).sum(axis=1).mean()
            rows.append((name, low <= value <= high, high - low, lost))
    return pd.DataFrame(rows, columns=["policy", "covered", "width", "censored"])


def policies_of(x):
    """Three policies for covariates, (m, 2) -> (m, 3) each."""
    each = np.eye(3)[np.where(x.sum(axis=1) == 2, 1, 2)]
    one = np.broadcast_to(np.eye(3)[2], each.shape)
    return {"the same for everyone": one, "equal odds": np.full(each.shape, 1 / 3), "the best for each": each}


def followed(repetitions, workers, n=500):
    """Print and give the table of coverage under censoring and of rare outcomes."""
    lines = [
        "| 500 patients | censored | the same for everyone | equal odds | the best for each |",
        "|---|---:|---:|---:|---:|",
    ]
    with ProcessPoolExecutor(workers, initializer=one_thread) as pool:
        for number, kind in enumerate(FOLLOWED):
            seeds = np.random.SeedSequence([19, number]).spawn(max(1, repetitions // TOGETHER))
            rows = pd.concat(pool.map(repeat_followed, [(kind, n, min(TOGETHER, repetitions), s) for s in seeds]))
            covered = 100 * rows.groupby("policy", sort=False)["covered"].mean()
            cells = [f"{each:.1f}" if LEAST <= each <= MOST else f"**{each:.1f}**" for each in covered]
            lines.append(f"| {kind} | {100 * rows['censored'].mean():.0f} % | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return "\n".join([*lines, ""])


def repeat_trials(task):
    """`planted_logs.repeated` of some logs of one world."""
    world, number = task
    return repeated(WORLDS[world], TOGETHER, number).assign(world=world)


def trials(repetitions, workers):
    """Print and give the table of what `policysim compare` tells of planted logs: coverage, bias, what is invented."""
    lines = [
        "| patients, world | logs | best for each | optimum | response | bias, of an error | better falsely | signs |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    chunks = max(1, repetitions // TOGETHER)
    with ProcessPoolExecutor(workers, initializer=one_thread) as pool:
        for number, (world, given) in enumerate(WORLDS.items()):
            seeds = [int(np.random.SeedSequence([21, number, chunk]).generate_state(1)[0]) for chunk in range(chunks)]
            rows = pd.concat(pool.map(repeat_trials, [(world, seed) for seed in seeds]))
            lines.append(trials_line(f"{given.patients:,}, {world}", rows))
            print(lines[-1], flush=True)
    return "\n".join([*lines, ""])


def trials_line(world, rows):
    """One line of that table: per cent covered, the largest bias, per cent of logs."""
    found = rows.groupby("policy")
    covered = 100 * found["covered"].mean()
    bias = (found["error"].mean() / found["error"].std()).abs().max()
    told = [100 * found[name].mean().max() for name in ("invented", "signs")]
    logs = len(rows) // len(covered)
    cells = [f"{covered[name]:.1f}" for name in ("greedy", "optimal", "randomized-response")]
    signs = "–" if np.isnan(told[1]) else f"{told[1]:.1f}"  # told of null worlds only
    return f"| {world} | {logs:,} | {' | '.join(cells)} | {bias:.2f} | {told[0]:.1f} | {signs} |"


def verdicts(study, seeds):
    """Print what `policysim compare` tells of a study by seed: how often each verdict is told, at the study's ε."""
    study = ps.load_study(study)
    log, told = load_log(study.log), []
    names = [name for name in study.policies if name != "best-fixed"]
    asked = replace(study, epsilons=(study.epsilon,), by=(), policies=("greedy", "best-fixed", "exponential", *names))
    asked = replace(asked, policies=tuple(dict.fromkeys(asked.policies)))
    for seed in range(seeds):
        one = replace(asked, seed=seed)
        rows = compare_log(one, log).set_index("policy")
        private = rows.loc[[name for name in rows.index if name in names], "fitted_value"].idxmax()
        each = {"best for each": "greedy", "best private draw": private, "exponential": "exponential"}
        ends = {what: rows.loc[name, ["difference_low", "difference_high"]] for what, name in each.items()}
        signs = {"different effects": "signs" if heterogeneity(log, one)["signs"][0] else "not shown"}
        told.append(signs | {what: verdict_of_interval(*pair) for what, pair in ends.items()})
    for what, counts in pd.DataFrame(told).apply(lambda column: column.value_counts().to_dict()).items():
        print(f"{study.name}, {what}: {counts}", flush=True)


def bare_numpy(log, evaluated, predictions):
    """DR, its standard error and the effective sample size in a few lines, unchecked: what a peer would write."""
    rows = np.arange(log.n_rows)
    w = evaluated[rows, log.actions] / log.propensities
    added = (evaluated * predictions).sum(axis=1) + w * (log.rewards - predictions[rows, log.actions])
    return added.mean(), added.std(ddof=1) / np.sqrt(log.n_rows), w.sum() ** 2 / (w**2).sum()


def speed(n=1_000_000, k=4):
    """Print the seconds of an estimate on a million rows, after the outcome model.

    What bounds them is memory: picking each row's own entry of two tables, and some 40 passes over columns of 8 MB.
    """
    rng = np.random.default_rng(0)
    evaluated, logging = rng.dirichlet(np.ones(k), n), rng.dirichlet(3 * np.ones(k), n)
    actions = draw_actions(logging, rng)
    log = LoggedData(actions, rng.random(n), logging[np.arange(n), actions], tuple("abcd"))
    fitted = CrossFit(np.zeros((n, 1)), np.zeros(n, dtype=np.intp), (), rng.random((n, k)), ())
    print(f"{os.cpu_count()} processors, Python {sys.version.split()[0]}, numpy {np.__version__}")
    print(f"{n:,} rows x {k} actions, the best of {ROUNDS} rounds")
    for name in ESTIMATORS:
        show(
            f"{name}: value, SE, interval, ESS, warnings",
            lambda n=name: estimate_value(log, evaluated, estimator=n, fitted=fitted),
        )
    show("dr in bare numpy: value, SE, ESS", lambda: bare_numpy(log, evaluated, fitted.predictions))
    parts = (evaluated, fitted.predictions, log.rewards, log.propensities, actions)
    show(f"  reading its {sum(p.nbytes for p in parts) / 1e6:.0f} MB once", lambda: [part.sum() for part in parts])
    columns = {"action": actions, "reward": log.rewards, "propensity": log.propensities}
    frame = pd.DataFrame(columns | {f"x{i}": rng.random(n) for i in range(10)})
    show(
        "evaluate_log, a data frame of 10 covariates: snips",
        lambda: evaluate_log(frame, evaluated, estimator="snips"),
        3,
    )
    show("  dr, ridge fitted in 5 folds", lambda: evaluate_log(frame, evaluated), 1)


def show(what, work, rounds=ROUNDS):
    """Print the seconds of the best of some rounds, and those that the processors worked."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter(), time.process_time()
        work()
        seconds.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    print(f"{what:<56}{min(wall for wall, _ in seconds):8.3f} s, processors {min(own for _, own in seconds):7.3f} s")


def main():
    """One of the two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coverage", action="store_true", help=f"write {DOCUMENT.name}; half an hour or more")
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--holes", action="store_true", help="holes in overlap, --repetitions logs of each kind")
    parser.add_argument("--arms", action="store_true", help="the difference to one arm for all, by --repetitions")
    parser.add_argument(
        "--trials", action="store_true", help="what compare tells of planted logs: a part of --coverage"
    )
    parser.add_argument("--verdicts", metavar="STUDY", help="what compare tells of a study, by --repetitions seeds")
    parser.add_argument("--followed", action="store_true", help="censored and rare outcomes: a part of --coverage")
    options = parser.parse_args()
    if options.holes:
        holes(options.repetitions)
    elif options.arms:
        arms(options.repetitions, options.workers)
    elif options.verdicts:
        verdicts(options.verdicts, options.repetitions)
    elif options.trials:
        trials(options.repetitions, options.workers)
    elif options.followed:
        followed(options.repetitions, options.workers)
    elif options.coverage:
        coverage(options.repetitions, options.workers)
    else:
        speed()


if __name__ == "__main__":
    main()
