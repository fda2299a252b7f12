"""What `policysim compare` says of planted logs: python benchmarks/log_verdicts.py --logs 200 --seed 1.

Six worlds in which no policy gains anything over one arm for all, and two in which choosing for each patient gains .10;
500 patients each, scores by `model = "linear"`. C is the best for each patient, B the fitted exponential mechanism at
ε = 1. Prints a Markdown table, in per cent of the logs:

- better, worse: the verdict against one arm for all, on splits that are added as `compare` adds them;
- one split: better by the first split alone, as by ordinary cross-fitting;
- covered: the interval of the difference holds its truth;
- power predicted: the mean over logs of the power at the true gain of the log's own policies, by the drawn logs of
  `evidence.shown_gain`; it is to agree with *better*;
- seeds agree: another seed of the splits gives the same verdict (with --seeds, which takes twice as long);
- claims agree: it gives the same where either is better or worse; the others are *equal* and *not shown*.

Then the verdicts on arms that are equal, and the interval of a weighted share (--arms); --halves STUDY says whether
two random halves of a log contradict each other.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from side_by_side import markdown

from policysim.logs.load_log import load_log
from policysim.logs.log_frame import LoggedData
from policysim.report.findings import BETTER, WORSE, verdict_of_interval
from policysim.study.study_reader import load_study
from policysim.trials import trial_columns
from policysim.trials.arms import arm_means
from policysim.trials.contrasts import against_highest
from policysim.trials.estimators import over_splits
from policysim.trials.evidence import needed_gains

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from planted_logs import GAINS, NULLS, planted_log, told_of

CLAIMS = {BETTER, WORSE}
POLICIES = {"greedy": "C", "exponential-fitted": "B"}


def verdicts(world, logs, seed, *, again):
    """A row for each log and policy."""
    rng, rows = np.random.default_rng(seed), []
    for draw in range(logs):
        study, log = planted_log(world, rng)
        study = replace(study, policies=tuple(POLICIES))
        others = dict.fromkeys(POLICIES, "")
        if again:
            for name, _, estimates in told_of(world, replace(study, seed=study.seed + 1), log):
                others[name] = verdict_of_interval(*over_splits(estimates)[1:3])
        for name, truth, estimates in told_of(world, study, log):
            told = over_splits(estimates)
            verdict = verdict_of_interval(told.low, told.high)
            first = over_splits(estimates[:1])
            needed = needed_gains(estimates)
            same = verdict == others[name]
            rows.append(
                {
                    "log": draw,
                    "policy": POLICIES[name],
                    "truth": truth,
                    "better": verdict == BETTER,
                    "worse": verdict == WORSE,
                    "one split": first.low > 0,
                    "covered": told.low - 1e-12 <= truth <= told.high + 1e-12,
                    "power predicted": float((needed < truth).mean()) if len(needed) else 0.0,
                    "seeds agree": same if again else np.nan,
                    "claims agree": same or not {verdict, others[name]} & CLAIMS if again else np.nan,
                    "splits": len(estimates),
                }
            )
    return pd.DataFrame(rows)


def equal_arms(logs, seed):
    """How often some of k equal arms is called better than another; and whether a weighted share is covered."""
    rng, rows = np.random.default_rng(seed), []
    for k in (2, 3, 6):
        false = 0
        for _ in range(logs):
            actions, rewards = rng.integers(k, size=200 * k), (rng.random(200 * k) < 0.4).astype(float)
            means = arm_means(LoggedData(actions, rewards, np.full(200 * k, 1 / k), tuple("abcdef"[:k])))
            false += bool((against_highest(means)["low"] > 0).any())
        rows.append({"arms": f"{k} equal arms", "called better": false / logs, "interval covers": np.nan})
    false = covered = 0
    for _ in range(logs):
        chance = np.where(rng.random(1000) < 0.5, 0.9, 0.03)
        actions, rewards = (rng.random(1000) < chance).astype(int), (rng.random(1000) < 0.05).astype(float)
        means = arm_means(LoggedData(actions, rewards, np.where(actions == 1, chance, 1 - chance), ("a", "b")))
        false += bool((against_highest(means)["low"] > 0).any())
        covered += bool(means["low"][1] <= 0.05 <= means["high"][1])
    rows.append({"arms": "2, few heavy rows", "called better": false / logs, "interval covers": covered / logs})
    return pd.DataFrame(rows)


def contradictions(path, pairs, seed):
    """The verdicts of both halves of a log, cut at random so many times: policies against A, and arms."""
    study = load_study(path)
    log = load_log(study.log)
    rng, rows = np.random.default_rng(seed), []
    policies = [study.policy(name, study.epsilon) for name in POLICIES]
    for pair in range(pairs):
        half = rng.permutation(log.data.n_rows) < log.data.n_rows // 2
        for name, part in (("first", half), ("second", ~half)):
            own = np.flatnonzero(part)
            data = log.data.of(own)
            outcomes = {title: values[own] for title, values in log.outcomes.items()}
            mine = replace(log, data=data, records=log.records[own], outcomes=outcomes, raw=None)
            judged = trial_columns.judged_on_splits(study, mine, policies)
            rows += [(pair, name, policy, "A", verdict) for policy, verdict in judged[["policy", "verdict"]].to_numpy()]
            apart = against_highest(arm_means(data, study.log.utility_range))
            rows += [
                (pair, name, best, than, verdict_of_interval(low, high))
                for best, than, _, low, high in apart.to_numpy()
            ]
    found = pd.DataFrame(rows, columns=["pair", "half", "option", "than", "verdict"])
    # One way round, so that the two halves can be compared.
    turned = found["option"] > found["than"]
    turned &= found["than"] != "A"
    found.loc[turned, ["option", "than"]] = found.loc[turned, ["than", "option"]].to_numpy()
    found.loc[turned, "verdict"] = found.loc[turned, "verdict"].replace({BETTER: WORSE, WORSE: BETTER})
    return found


def main():
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", action="store_true", help="compare two seeds of the splits")
    parser.add_argument("--world", help="only worlds whose name has this in it")
    parser.add_argument("--arms", action="store_true", help="equal arms and a weighted share")
    parser.add_argument("--halves", type=Path, help="a study of a log, cut into random halves")
    options = parser.parse_args()
    if options.halves:
        found = contradictions(options.halves, options.logs, options.seed)
        print(found.groupby(["option", "than"])["verdict"].value_counts().unstack(fill_value=0).to_string())
        both = found.groupby(["pair", "option", "than"])["verdict"].agg(set)
        print("contradictions:", int(both.map(lambda each: {BETTER, WORSE} <= each).sum()), "of", len(both))
        return
    if options.arms:
        print(markdown(equal_arms(options.logs, options.seed).round(3).to_dict("records")))
        return
    for name, world in {**NULLS, **GAINS}.items():
        if options.world and options.world not in name:
            continue
        found = verdicts(world, options.logs, options.seed, again=options.seeds)
        means = found.drop(columns="log").groupby("policy").mean().round(3).sort_index(ascending=False)
        print(f"\n{name} ({options.logs} logs)\n{means.to_string()}", flush=True)


if __name__ == "__main__":
    main()
