"""What studies of a source share that build on a study of policies: that study, and names of what it knows."""

from __future__ import annotations

from collections.abc import Sequence

from envs.toml_reader import InputFileError, Table, unknown
from policysim.study import ScenarioStudy, require_scenario
from policysim.study_file import load_study

BUILT_IN = "covid"


def read_study(table: Table) -> ScenarioStudy:
    """The study of policies that the key `study` names; the built-in one where it cannot be read."""
    name = table.text("study")
    try:
        return require_scenario(load_study(name or BUILT_IN))
    except InputFileError as error:
        table.mistakes.merge(error, "study")
    except ValueError as error:
        table.fail(str(error), "study")
    return require_scenario(load_study(BUILT_IN))


def read_names(table: Table, key: str, known: Sequence[str], default: Sequence[str] | None = None) -> tuple[str, ...]:
    """A list of known names, each once; required if there is no default."""
    names = table.list_of(key, lambda value: isinstance(value, str), "names", default)
    for place, name in enumerate(names):
        if name not in known:
            table.fail(unknown("name", name, known), key, place)
    return tuple(dict.fromkeys(name for name in names if name in known))
