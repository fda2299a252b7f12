"""What Gymnasium calls to make the environments: of a scenario, or of a study, whose utility pays."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs.scenario import Scenario, with_utility
from envs.scenario_reader import scenario_names
from envs.toml_reader import text_of
from envs.treatment import TreatmentEnv
from envs.treatment_vector import TreatmentVectorEnv

if TYPE_CHECKING:
    from policysim.study.declared import Study

DEFAULT = "covid"
# What says who the patients of a study are; no scenario has such a key.
KEYS_OF_STUDIES = {"scenario", "cohort", "data"}


def treatment_env(
    scenario: str | Path | Scenario | Study | None = None,
    *,
    study: str | Path | Study | None = None,
    utility: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> TreatmentEnv:
    """What `gymnasium.make("policysim:policysim/Treatment-v1", ...)` makes: see `envs.treatment.TreatmentEnv`.

    Parameters
    ----------
    scenario : str, Path or Scenario, optional
        "covid" by default. A study, its name or its file is taken as a study.
    study : str, Path or Study, optional
        Its scenario comes, and its weights and costs pay.
    utility : mapping, optional
        Weights and costs in place of these, for those that are named.
    arguments
        As of the environment.

    Raises
    ------
    ValueError
        For both a scenario and a study, and for a study without a scenario, as of a log or a table.
    InputFileError
        For a file that does not exist or has mistakes.
    """
    patients, worth = _patients_and_utility(scenario, study, utility)
    return TreatmentEnv(patients, utility=worth, **arguments)


def treatment_vector_env(
    num_envs: int = 1,
    scenario: str | Path | Scenario | Study | None = None,
    *,
    study: str | Path | Study | None = None,
    utility: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> TreatmentVectorEnv:
    """What `gymnasium.make_vec` makes: as `treatment_env`, of many patients."""
    patients, worth = _patients_and_utility(scenario, study, utility)
    return TreatmentVectorEnv(num_envs, patients, utility=worth, **arguments)


def _patients_and_utility(
    scenario: str | Path | Scenario | Study | None, study: str | Path | Study | None, utility: Mapping[str, Any] | None
) -> tuple[str | Path | Scenario, Mapping[str, Any] | None]:
    """The scenario that comes, and the weights and costs that pay in place of its own."""
    if scenario is not None and study is not None:
        raise ValueError(
            f"give a scenario or a study, which names its scenario, not both; got scenario={_shown(scenario)}, "
            f"study={_shown(study)}."
        )
    if study is None and (scenario is None or isinstance(scenario, Scenario)):
        return DEFAULT if scenario is None else scenario, utility
    if study is None and isinstance(scenario, str | Path) and not _is_study(scenario):
        return scenario, utility
    from policysim.study.declared import CohortStudy, ScenarioStudy, Study  # noqa: PLC0415 - not for a scenario
    from policysim.study.study_reader import load_study  # noqa: PLC0415

    named = scenario if study is None else study
    if not isinstance(named, Study | str | Path):
        kind = "scenario" if study is None else "study"
        raise ValueError(f"{kind} must be a {kind.title()}, a built-in name or a path, got {_shown(named)}.")
    loaded = named if isinstance(named, Study) else load_study(named)
    if not isinstance(loaded, ScenarioStudy):
        table = isinstance(loaded, CohortStudy)
        what = "a table, which is evaluated exactly" if table else "a log, which says nothing of other treatments"
        instead = "policysim.compare(policysim.build_problem(study))" if table else "policysim.evaluate_log"
        raise ValueError(
            f"{loaded.name} is a study of {what}: it has no environment. Use {instead}, or write a scenario."
        )
    worth = with_utility(with_utility(loaded.scenario, vars(loaded.utility)), utility)
    costs = {name: treatment.cost for name, treatment in worth.treatments.items()}
    return loaded.scenario, {"weights": dict(worth.weights), "costs": costs}


def _is_study(named: str | Path) -> bool:
    """Whether what was given as a scenario is a study: by its name, or by the keys of its file."""
    if str(named) in scenario_names():
        return False
    if not str(named).endswith(".toml"):
        from policysim.study.study_reader import study_names  # noqa: PLC0415

        return str(named) in study_names()
    try:
        return not KEYS_OF_STUDIES.isdisjoint(tomllib.loads(text_of(Path(named))))
    except (OSError, ValueError, RecursionError):  # the reader of scenarios says what is wrong
        return False


def _shown(named: object) -> str:
    """A name or path as it was given; the type and name of an object."""
    if isinstance(named, str | Path):
        return repr(str(named))
    return f"{type(named).__name__} {getattr(named, 'name', named)!r}"
