"""What a policy earns in a Gymnasium environment, by simulation, beside the exact value where that is known."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker
from numpy.typing import NDArray

from envs.treatment import TreatmentEnv
from envs.treatment_response import ResponseModel, is_whole
from envs.treatment_vector import TreatmentVectorEnv
from policies.arrays import BoolArray, FloatArray
from policies.fitted import FittedPolicy
from policies.policy import Policy
from policysim.course.occupancy import of_days
from policysim.course.simulation import BATCH
from policysim.course.treatment_course import scenario_course
from policysim.files.terminal import progress_bar
from policysim.progress import Progress
from policysim.study.checks import Agreement
from policysim.study.registration import ENVIRONMENTS
from policysim.utility import COSTS, Utility

if TYPE_CHECKING:
    import pandas as pd

RETURN, OUTCOME, MASK = "return", "outcome", "action_mask"
# From an observation (of a vector environment, a batch) and the actions that it allows, if that is known, to an action.
Chooser: TypeAlias = Callable[[Any, Any], Any]


def evaluate(
    env: str | gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any],
    policy: Any,
    *,
    episodes: int = 10_000,
    seed: int = 0,
    deterministic: bool = True,
) -> pd.DataFrame:
    """Let a policy act in an environment, and compare its mean return and outcomes with known exact values.

    Parameters
    ----------
    env : str, gymnasium.Env or VectorEnv
        The id of an environment, or an environment, of this package or any other. By the id
        "policysim:policysim/Treatment-v1" many patients are treated at once, unless the policy is a function.
    policy : FittedPolicy, model or callable
        `make_policy(...).fit(problem)`, or any object with `act(observation, rng)`, as `privatize_policy` makes of an
        agent; a model of Stable-Baselines3, or any object with `predict(observation, deterministic=...)`, which gets
        `action_masks` too if it takes them; or a function from an observation to an action. Of a vector environment,
        each of these gets a batch of observations and gives as many actions.
    episodes : int, optional
        How many, >= 2. Each place of a vector environment has an equal part of them, so that short ones are not
        counted more often.
    seed : int, optional
        Of two streams, `numpy.random.SeedSequence(seed).spawn(2)`: one for `act`, one that seeds the environment. A
        model that is not deterministic, and a function, draw from their own.
    deterministic : bool, optional
        What `predict` is asked for.

    Returns
    -------
    DataFrame
        A row for the return, the sum of an episode's rewards, and one for each outcome that the environment counts in
        `info["outcome"]`: on how many steps of an episode it was there.

        - `quantity`: "return", or the outcome
        - `mean`, `standard_error`: over the episodes
        - `exact`: what is expected, where that is known: for a `FittedPolicy` on the records of a scenario, in an
          environment of this package on that scenario without wrappers, with any horizon. There the policy decides
          every morning by the record; else NaN
        - `errors_apart`: |mean - exact| / standard_error; inf where no two episodes differ, and the mean is not exact
        - `episodes`: how many

    Raises
    ------
    ValueError
        For what is no environment or policy, fewer than two episodes, and an action that an environment of this package
        does not allow.

    Examples
    --------
    >>> found = evaluate("CartPole-v1", lambda observation: int(observation[2] > 0), episodes=50)
    >>> found["quantity"].tolist(), bool(30 < found["mean"].item() < 60)
    (['return'], True)
    """
    import pandas as pd  # noqa: PLC0415 - half a second that other uses of this module do not need

    if not is_whole(episodes) or episodes < 2:
        raise ValueError(f"episodes must be a whole number >= 2, for a standard error, got episodes={episodes!r}.")
    choosing, arriving = np.random.SeedSequence(seed).spawn(2)
    choose = _chooser(policy, np.random.default_rng(choosing), deterministic)
    made, env_seed = _environment(env, policy, int(episodes)), int(arriving.generate_state(1)[0])
    with progress_bar() as progress:
        progress.expect(int(episodes))
        if isinstance(made, VectorEnv):
            counts = _many(made, choose, int(episodes), env_seed, progress)
        else:
            counts = _one_by_one(made, choose, int(episodes), env_seed, progress)
    exact, rows = _exact(made, policy), []
    if made is not env:
        made.close()
    for name, totals in counts.items():
        error = float(totals.std(ddof=1)) / math.sqrt(len(totals))
        found = Agreement(len(totals), float(totals.mean()), error, exact.get(name, math.nan), math.nan)
        apart = found.errors_apart if name in exact else math.nan
        rows.append((name, found.mean, error, found.exact, apart, found.patients))
    return pd.DataFrame(rows, columns=["quantity", "mean", "standard_error", "exact", "errors_apart", "episodes"])


def _chooser(policy: Any, rng: np.random.Generator, deterministic: bool) -> Chooser:
    """What chooses, of whatever kind the policy is."""
    if isinstance(policy, Policy) and not hasattr(policy, "act"):
        raise ValueError(f"policy must be fitted first: policy.fit(problem), got policy={policy!r}.")
    if hasattr(policy, "act"):
        return lambda observation, _: policy.act(observation, rng)
    if hasattr(policy, "predict"):
        takes_masks = "action_masks" in inspect.signature(policy.predict).parameters

        def predict(observation: Any, mask: Any) -> Any:
            masks = {"action_masks": mask} if takes_masks and mask is not None else {}
            return policy.predict(observation, deterministic=deterministic, **masks)[0]

        return predict
    if not callable(policy):
        raise ValueError(
            "policy must be a fitted policy, a model with predict(observation, deterministic=...), or a function from "
            f"an observation to an action, got policy={policy!r}."
        )
    return lambda observation, _: policy(observation)


def _environment(env: Any, policy: Any, episodes: int) -> gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]:
    """The environment: of an id of ours one of many patients, unless the policy takes single observations."""
    if isinstance(env, gymnasium.Env | VectorEnv):
        return env
    if not isinstance(env, str):
        raise ValueError(f"env must be the id of an environment, an environment, or a vector one, got env={env!r}.")
    if env.rpartition(":")[2] in ENVIRONMENTS and (hasattr(policy, "act") or hasattr(policy, "predict")):
        return gymnasium.make_vec(env, num_envs=min(BATCH, episodes), autoreset_mode="Disabled")
    return gymnasium.make(env)


def _one_by_one(
    env: gymnasium.Env[Any, Any], choose: Chooser, episodes: int, seed: int, progress: Progress
) -> dict[str, FloatArray]:
    """The return and outcomes of each episode, (episodes,) each."""
    counts: dict[str, FloatArray] = {}
    for episode in range(episodes):
        observation, info = env.reset(seed=None if episode else seed)
        if not counts:
            counts = {name: np.zeros(episodes) for name in (RETURN, *_outcomes(info))}
        over = False
        while not over:
            action = choose(observation, info.get(MASK))
            observation, reward, terminated, truncated, info = env.step(action)
            came = {RETURN: reward, **_outcomes(info)}
            for name, totals in counts.items():
                totals[episode] += came.get(name, 0.0)
            over = terminated or truncated
        progress.advance()
    return counts


def _many(
    env: VectorEnv[Any, Any, Any], choose: Chooser, episodes: int, seed: int, progress: Progress
) -> dict[str, FloatArray]:
    """The same of a vector environment, whatever its autoreset mode; each place has an equal part of the episodes."""
    mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
    due = episodes // env.num_envs + (np.arange(env.num_envs) < episodes % env.num_envs)
    observations, infos = env.reset(seed=seed)
    mask = infos.get(MASK)
    running = {name: np.zeros(env.num_envs) for name in (RETURN, *_outcomes(infos))}
    finished: dict[str, list[FloatArray]] = {name: [] for name in running}
    resets = np.zeros(env.num_envs, dtype=np.bool_)
    while due.any():
        observations, rewards, terminated, truncated, infos = env.step(choose(observations, mask))
        mask, over = infos.get(MASK), np.asarray(terminated | truncated)
        ended = over & ~resets
        counted = ended & (due > 0)
        came = {RETURN: rewards, **_of_this_step(infos, over)}
        for name, sums in running.items():
            np.add(sums, came.get(name, 0.0), out=sums, where=~resets)
            finished[name].append(sums[counted])
            sums[ended] = 0.0
        due = due - counted
        progress.advance(int(counted.sum()))
        if mode is AutoresetMode.NEXT_STEP:
            resets = ended  # the next step only brings the next episode
        elif mode is AutoresetMode.DISABLED and over.any():
            observations, infos = env.reset(options={"reset_mask": over})
            mask = None if mask is None else np.where(over[:, np.newaxis], infos[MASK], mask)
    return {name: np.concatenate(parts) for name, parts in finished.items()}


def _outcomes(info: Mapping[str, Any]) -> dict[str, Any]:
    """The outcomes of a step by name, of one environment or of many: what comes beside them, with "_", is left out."""
    outcomes = info.get(OUTCOME)
    if not isinstance(outcomes, Mapping):
        return {}
    return {name: came for name, came in outcomes.items() if not (name.startswith("_") and name[1:] in outcomes)}


def _of_this_step(infos: Mapping[str, Any], over: BoolArray) -> dict[str, NDArray[Any]]:
    """The outcomes of many; of those whose episode has ended and who were reset at once, those of the last step."""
    last = _outcomes(infos.get("final_info", {}))
    return {name: np.where(over, last.get(name, came), came) for name, came in _outcomes(infos).items()}


def _exact(env: Any, policy: Any) -> dict[str, float]:
    """What is expected of the return and of each outcome, where it is known; else nothing."""
    while isinstance(env, PassiveEnvChecker | OrderEnforcing):  # other wrappers may change what is paid
        env = env.env
    if not isinstance(env, TreatmentEnv | TreatmentVectorEnv) or not isinstance(policy, FittedPolicy):
        return {}
    scenario, problem = env.ward.scenario, policy.problem
    if problem.records != scenario.space or tuple(problem.actions) != scenario.actions:
        return {}
    allowed = ResponseModel(scenario).admissible
    if allowed is not None and policy.probabilities[~allowed].any():
        return {}
    course = scenario_course(scenario, Utility.of(scenario), env.ward.horizon, length_public=True)
    expected = course.counted(of_days(course, lambda _: policy.probabilities)[1])
    costs = expected.pop(COSTS)
    return {RETURN: -math.fsum(scenario.weights[name] * mean for name, mean in expected.items()) - costs, **expected}
