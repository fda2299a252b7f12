"""The functions that Gymnasium calls to make environments, of a scenario or of a study."""

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

# What says who the patients of a study are; no scenario has such a key.
KEYS_OF_STUDIES = {"scenario", "cohort", "data"}


def treatment_env(**arguments: Any) -> TreatmentEnv:
    """What `gymnasium.make` makes, of the arguments of `TreatmentEnv`, or with a study in place of a scenario."""
    return TreatmentEnv(**without_study(**arguments))


def treatment_vector_env(**arguments: Any) -> TreatmentVectorEnv:
    """What `gymnasium.make_vec` makes, likewise."""
    return TreatmentVectorEnv(**without_study(**arguments))


def without_study(
    *,
    scenario: str | Path | Scenario | Study | None = None,
    study: str | Path | Study | None = None,
    utility: Mapping[str, Any] | None = None,
    **others: Any,
) -> dict[str, Any]:
    """The arguments of an environment, with the scenario and the utility of a study in place of it.

    Parameters
    ----------
    scenario : str, Path or Scenario, optional
        As of the environment. A study, its name or its file is taken as a study.
    study : str, Path or Study, optional
        Of a scenario.
    utility : mapping, optional
        Weights and costs in place of the scenario's or the study's, for those that are named.
    others
        Are handed on.

    Raises
    ------
    ValueError
        For both a scenario and a study, what is neither, and a study without a scenario, as of a log or a table.
    InputFileError
        For a file that does not exist or has mistakes.
    """
    if scenario is None and study is None:
        return {"utility": utility, **others}
    if scenario is not None and study is not None:
        raise ValueError(
            f"give a scenario or a study, which names its scenario, not both; got scenario={_shown(scenario)}, "
            f"study={_shown(study)}."
        )
    if isinstance(scenario, Scenario) or (isinstance(scenario, str | Path) and not _is_study(scenario)):
        return {"scenario": scenario, "utility": utility, **others}
    from policysim.study.declared import CohortStudy, ScenarioStudy, Study  # noqa: PLC0415 - not for a scenario
    from policysim.study.study_reader import load_study  # noqa: PLC0415

    given, kind = (scenario, "scenario") if study is None else (study, "study")
    if not isinstance(given, Study | str | Path):
        raise ValueError(f"{kind} must be a {kind.title()}, a built-in name or a path, got {_shown(given)}.")
    loaded = given if isinstance(given, Study) else load_study(given)
    if not isinstance(loaded, ScenarioStudy):
        kind = "table: use policysim.compare" if isinstance(loaded, CohortStudy) else "log: use policysim.evaluate_log"
        raise ValueError(f"{loaded.name} has no environment, as the study of a {kind}, or write a scenario.")
    return {"scenario": with_utility(with_utility(loaded.scenario, vars(loaded.utility)), utility), **others}


def _is_study(named: str | Path) -> bool:
    """Whether what was given as a scenario is a study: by its name, or by the keys of its file."""
    if str(named) in scenario_names():
        return False
    if not str(named).endswith(".toml"):
        from policysim.study.study_reader import study_names  # noqa: PLC0415 - not for a scenario

        return str(named) in study_names()
    try:
        return not KEYS_OF_STUDIES.isdisjoint(tomllib.loads(text_of(Path(named))))
    except (OSError, ValueError, RecursionError):  # the reader of scenarios says what is wrong
        return False


def _shown(given: object) -> str:
    """A name or path as it was given; the type and name of an object."""
    if isinstance(given, str | Path):
        return repr(str(given))
    return f"{type(given).__name__} {getattr(given, 'name', given)!r}"
