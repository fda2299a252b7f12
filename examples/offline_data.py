"""Stays to learn from offline, or to try off-policy estimators on, beside what policies are worth exactly.

`python examples/offline_data.py FOLDER` treats patients who come ill, day by day, by a private policy that is known,
and writes, in about a minute,

FOLDER/stays.npz    one row for each day of a stay, as d3rlpy and others read them: observations, actions, rewards,
                    terminals; and behaviour and targets, what each policy would do there, (n_rows, n_actions)
FOLDER/stays.json   the exact value of each policy, with the same patients, and what was asked

and, if Minari is installed (`pip install 'minari[hdf5]'`), the data set `policysim/ill-v0`, which has the same numbers
in its metadata; `minari.get_normalized_score` then goes by exact values. Illustrative patients, not medical advice.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

import policysim as ps
from policysim.course.schedules import Schedules
from policysim.course.treatment_course import TreatmentCourse
from policysim.study.declared import ScenarioStudy

STUDY, DAYS, STAYS, EPSILON, SEED, NAME = "covid", 14, 10_000, 2.0, 0, "policysim/ill-v0"
# Of the whole cohort, 92 % stay one day.
WHERE = {"covid_positive": 1, "fever": 1, "age": ["60-79", "80+"]}
BEHAVIOUR = "behaviour"
Array = NDArray[Any]


def policies_of(course: TreatmentCourse) -> dict[str, list[Array]]:
    """p(a|record) of each day, (n, k): who treats the patients, and who might have treated them."""
    plan, n, k = ps.plan(course), *course.rewards.shape
    fixed = max(range(k), key=lambda action: ps.policy_value(course, np.eye(k)[[action]].repeat(n, axis=0)))
    days = (fixed,) * course.horizon
    schedule = Schedules(course, (1,) * course.horizon).best(course.initial, days)
    return {
        BEHAVIOUR: [
            ps.privatize_policy(day, epsilon=EPSILON, policy="randomized-response").predict_proba(np.arange(n))
            for day in plan.q_values
        ],
        "optimum": [np.eye(k)[day] for day in plan.actions],
        "one schedule for all": [np.eye(k)[[day]].repeat(n, axis=0) for day in schedule],
        "uniform": [np.full((n, k), 1 / k)] * course.horizon,
    }


def stays(study: ScenarioStudy, course: TreatmentCourse, policies: dict[str, list[Array]], n: int) -> dict[str, Array]:
    """The days of n stays, patient by patient: rows as in stays.npz, and the observation after each."""
    env = gymnasium.make_vec(
        "policysim:policysim/Treatment-v1", num_envs=n, study=study, horizon=course.horizon, autoreset_mode="Disabled"
    )
    # Not the patients' own stream, which has the seed alone: actions would go with what is about to happen.
    rng, over = np.random.default_rng([SEED, 1]), np.zeros(n, dtype=bool)
    seen, _ = env.reset(seed=SEED, options={"where": WHERE})
    days, treated = [], []
    for day in range(course.horizon):
        records = course.records.indices(seen[:, : len(course.records.names)])
        chances = {name: tables[day][records] for name, tables in policies.items()}
        actions = (rng.random((n, 1)) > chances[BEHAVIOUR].cumsum(axis=1)[:, :-1]).sum(axis=1)
        after, rewards, ended, *_ = env.step(actions)
        treated.append(~over)
        row = {"observations": seen, "actions": actions, "rewards": rewards, "terminals": ended, "after": after}
        days.append(row | chances)
        seen, over = after, ended
    # (days, stays, ...) -> (stays, days, ...) -> the rows of those in treatment
    there = np.stack(treated, axis=1)
    return {name: np.stack([day[name] for day in days], axis=1)[there] for name in days[0]}


def write_minari(rows: dict[str, Array], asked: dict[str, Any], values: dict[str, float], scenario: str) -> None:
    """The Minari data set: an episode for each stay."""
    import minari  # noqa: PLC0415 - not among what policysim needs
    from minari.data_collector import EpisodeBuffer  # noqa: PLC0415

    env = gymnasium.make("policysim:policysim/Treatment-v1", scenario=scenario, horizon=asked["horizon"])

    ends = np.flatnonzero(rows["terminals"]) + 1
    episodes = [
        EpisodeBuffer(
            id=number,
            observations=np.vstack([rows["observations"][start:end], rows["after"][end - 1 : end]]),
            actions=rows["actions"][start:end],
            rewards=rows["rewards"][start:end],
            terminations=rows["terminals"][start:end],
            truncations=np.zeros(end - start, dtype=bool),
            infos={"behaviour": rows[BEHAVIOUR][start:end]},
        )
        for number, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that no author is named
        made = minari.create_dataset_from_buffers(
            NAME,
            episodes,
            env=env,
            algorithm_name=f"randomized-response on optimal Q-values, epsilon {EPSILON} a day",
            description="Patients of policysim who come ill; exact_values are of policies, with the same patients.",
            ref_min_score=values["uniform"],
            ref_max_score=values["optimum"],
        )
    made.storage.update_metadata({"exact_values": json.dumps(values), "asked": json.dumps(asked)})


def main(folder: str) -> None:
    """Treat, evaluate exactly, write."""
    study = ps.load_study(STUDY)
    course = ps.build_course(study, DAYS, length_public=True, where=WHERE)
    policies = policies_of(course)
    values = {name: ps.policy_value(course, tables) for name, tables in policies.items()}
    rows = stays(study, course, policies, STAYS)
    asked = {"study": STUDY, "horizon": DAYS, "where": WHERE, "stays": STAYS, "epsilon": EPSILON, "seed": SEED}
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(place / "stays.npz", **{name: column for name, column in rows.items() if name != "after"})
    (place / "stays.json").write_text(json.dumps({"exact_values": values, **asked}, indent=1) + "\n", encoding="utf-8")
    if find_spec("minari"):
        write_minari(rows, asked, values, study.scenario_source)
    mean = rows["rewards"].sum() / STAYS
    for name, value in values.items():
        sys.stdout.write(f"{name:>21} {value:9.4f}{f', {mean:.4f} in the data' if name == BEHAVIOUR else ''}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
