"""Studies: what to compute, as a file that people write."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from envs.scenario import Scenario
from envs.scenario_file import load_scenario
from envs.toml_reader import InputFileError, Table, is_number, open_toml, unknown
from envs.utility import Utility, default_utility
from policies.adjacency import AnyRecord, OneFeature, Sensitive
from policies.catalogue import CATALOGUE, DEFAULT_POLICIES, unknown_policy

FOLDER = Path(__file__).parent / "studies"
ADJACENCIES = (AnyRecord.name, OneFeature.name, Sensitive.name)
# The default curve: 24 values from "hides almost everything" to "hides almost nothing".
# fmt: off
EPSILONS = (
    0.05, 0.07, 0.1, 0.14, 0.2, 0.27, 0.37, 0.5, 0.65, 0.8, 1.0, 1.3,
    1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.3, 8.0, 10.0, 12.5, 16.0, 20.0,
)
# fmt: on
EPSILON_WANTED = "a number >= 0"


@dataclass(frozen=True)
class Study:
    """Everything that a comparison depends on.

    Attributes
    ----------
    name : str
        The file's name without its ending, or its folder's if the file is called study.toml.
    text : str
        The file as it was read.
    portable : bool
        Whether the file means the same in another folder: its scenario is a built-in one.
    title : str
        The question, in words.
    scenario : Scenario
        The patients and treatments.
    scenario_source : str
        The built-in name or the path that it was read from.
    utility : Utility
        What outcomes and treatments cost.
    hidden_from : str
        Who sees the published treatment, in words.
    adjacency : str
        One of `ADJACENCIES`.
    sensitive : tuple of str
        The hidden features if `adjacency` is "sensitive".
    epsilon : float
        The privacy parameter that the printed table is about.
    epsilons : tuple of float
        Those of the curve, rising.
    policies : tuple of str
        Names from the catalogue.
    by : tuple of str
        Features whose levels are reported one by one.
    seed : int
        For whatever is drawn at random.
    """

    name: str
    text: str
    portable: bool
    title: str
    scenario: Scenario
    scenario_source: str
    utility: Utility
    hidden_from: str
    adjacency: str
    sensitive: tuple[str, ...]
    epsilon: float
    epsilons: tuple[float, ...]
    policies: tuple[str, ...]
    by: tuple[str, ...]
    seed: int

    @property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def with_choices(
        self,
        *,
        epsilons: Sequence[float] | None = None,
        policies: Sequence[str] | None = None,
        by: Sequence[str] | None = None,
        adjacency: str | None = None,
        sensitive: Sequence[str] | None = None,
        seed: int | None = None,
    ) -> Study:
        """The same study with other choices; ValueError names what does not exist.

        The printed table is then about the epsilon of the study, or else the one nearest to it on the log scale.
        """
        changed = self
        if epsilons is not None:
            listed = checked_epsilons(epsilons)
            changed = replace(changed, epsilons=listed, epsilon=_nearest(self.epsilon, listed))
        if policies is not None:
            for name in policies:
                if name not in CATALOGUE:
                    raise ValueError(unknown_policy(name))
            changed = replace(changed, policies=tuple(dict.fromkeys(policies)))
        if by is not None:
            changed = replace(changed, by=self._features(by, "group"))
        if seed is not None:
            if seed < 0:
                raise ValueError(f"seed must be a whole number >= 0, got {seed}")
            changed = replace(changed, seed=seed)
        return changed._with_adjacency(adjacency, sensitive)

    def _with_adjacency(self, adjacency: str | None, sensitive: Sequence[str] | None) -> Study:
        changed = self
        if sensitive:
            adjacency = adjacency or Sensitive.name
            changed = replace(changed, sensitive=self._features(sensitive, "feature"))
        if adjacency is not None:
            if adjacency not in ADJACENCIES:
                raise ValueError(unknown("adjacency", adjacency, ADJACENCIES))
            if adjacency == Sensitive.name and not changed.sensitive:
                raise ValueError("the adjacency sensitive needs the hidden features: --sensitive FEATURE")
            if adjacency != Sensitive.name and sensitive:
                raise ValueError(f"hidden features only go with the adjacency sensitive, not with {adjacency}")
            if adjacency != Sensitive.name:
                changed = replace(changed, sensitive=())
            changed = replace(changed, adjacency=adjacency)
        return changed

    def _features(self, names: Sequence[str], kind: str) -> tuple[str, ...]:
        for name in names:
            if name not in self.scenario.space.names:
                raise ValueError(unknown(kind, name, self.scenario.space.names))
        return tuple(dict.fromkeys(names))


def checked_epsilons(values: Iterable[float]) -> tuple[float, ...]:
    """Rising, distinct epsilons; ValueError for an empty list or a value that is not a number >= 0."""
    listed = [value.item() if isinstance(value, np.generic) else value for value in values]
    if not listed:
        raise ValueError(f"epsilon must be {EPSILON_WANTED}, got an empty list")
    for value in listed:
        if not is_number(value, 0):
            raise ValueError(f"epsilon must be {EPSILON_WANTED}, got {value!r}")
    return tuple(sorted({float(value) for value in listed}))


def study_names() -> list[str]:
    """The built-in studies."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def study_path(name: str | Path) -> Path:
    """The file of a built-in study, or the path itself; InputFileError if the name is neither."""
    if str(name).endswith(".toml"):
        return Path(name)
    if str(name) in study_names():
        return FOLDER / f"{name}.toml"
    known = unknown("study", str(name), study_names())
    folder = Path(name) / "study.toml"
    hint = f"; a folder: did you mean {folder.as_posix()}?" if folder.exists() else ""
    raise InputFileError(f"{known}, or a path that ends in .toml{hint}", located=False)


def load_study(name: str | Path) -> Study:
    """Read a study: a built-in name, or the path of a file that ends in .toml.

    Raises
    ------
    InputFileError
        With one `file:line: key: message` line for each mistake in the study or its scenario.

    Examples
    --------
    >>> load_study("covid").adjacency
    'any-record'
    """
    path = study_path(name)
    with open_toml(path) as table:
        study = _read(table, path)
    # Only now: leaving the block has raised whatever was wrong.
    return study  # noqa: RET504


def _read(table: Table, path: Path) -> Study:
    if "analysis" in table:
        raise InputFileError(f"{_name_of(path)} is a study of a source document: only compare runs it", located=False)
    scenario = _read_scenario(table, path)
    features = list(scenario.space.names) if scenario else None
    title = table.text("title", path.stem)
    seed = table.integer("seed", 0)
    privacy = table.table("privacy")
    hidden_from = privacy.text("hidden_from", "anyone who sees the published treatment")
    adjacency, sensitive = _read_adjacency(privacy, features)
    epsilons = privacy.list_of("epsilons", lambda value: is_number(value, 0), EPSILON_WANTED, EPSILONS)
    epsilon = privacy.number("epsilon", 1.0, low=0, high=math.inf)
    privacy.close()
    compare = table.table("compare")
    policies = _read_policies(compare)
    by = _read_features(compare, "by", "group", features)
    compare.close()
    utility = _read_utility(table.table("utility"), scenario)
    table.close()
    table.mistakes.raise_if_any()
    assert scenario is not None  # or there was a mistake
    listed = checked_epsilons(epsilons)
    return Study(
        name=_name_of(path),
        text=table.mistakes.text,
        portable=not table.text("scenario").endswith(".toml"),
        scenario_source=_scenario_source(table, path),
        title=title,
        scenario=scenario,
        utility=utility,
        hidden_from=hidden_from,
        adjacency=adjacency,
        sensitive=sensitive,
        epsilon=_nearest(epsilon, listed),
        epsilons=listed,
        policies=policies,
        by=by,
        seed=seed,
    )


def _name_of(path: Path) -> str:
    return path.parent.resolve().name if path.name == "study.toml" else path.stem


def _read_scenario(table: Table, path: Path) -> Scenario | None:
    name = table.text("scenario")
    if not name:
        return None
    try:
        return load_scenario(_scenario_source(table, path))
    except InputFileError as error:
        table.mistakes.merge(error, "scenario")
        return None


def _scenario_source(table: Table, path: Path) -> str:
    """The built-in name of the study's scenario, or the path of its file."""
    name = table.text("scenario")
    return str(path.parent / name) if name.endswith(".toml") else name


def _read_adjacency(privacy: Table, features: list[str] | None) -> tuple[str, tuple[str, ...]]:
    adjacency = privacy.text("adjacency", ADJACENCIES[0])
    if adjacency not in ADJACENCIES:
        privacy.fail(unknown("adjacency", adjacency, ADJACENCIES), "adjacency")
    sensitive = _read_features(privacy, "sensitive", "feature", features)
    if adjacency == "sensitive" and "sensitive" not in privacy:
        privacy.fail('sensitive is missing: adjacency "sensitive" needs the list of hidden features', "adjacency")
    if adjacency != "sensitive" and "sensitive" in privacy:
        privacy.fail('only goes with adjacency = "sensitive"', "sensitive")
    return adjacency, sensitive


def _read_policies(compare: Table) -> tuple[str, ...]:
    names = compare.list_of("policies", lambda value: isinstance(value, str), "text in quotes", DEFAULT_POLICIES)
    for position, name in enumerate(names):
        if name not in CATALOGUE:
            compare.fail(unknown_policy(name), "policies", position)
    return tuple(dict.fromkeys(names))


def _read_features(table: Table, key: str, kind: str, features: list[str] | None) -> tuple[str, ...]:
    names = table.list_of(key, lambda value: isinstance(value, str), "text in quotes", [])
    for position, name in enumerate(names):
        if features is not None and name not in features:
            table.fail(unknown(kind, name, features), key, position)
    return tuple(dict.fromkeys(names))


def _read_utility(table: Table, scenario: Scenario | None) -> Utility:
    """The scenario's utility with the study's own weights and costs in place of those they name."""
    if scenario is None:
        table.known.update(("weights", "costs"))
        return Utility({}, {})
    default = default_utility(scenario)
    weights = table.numbers("weights", scenario.outcomes, "outcome", low=0)
    costs = table.numbers("costs", scenario.actions, "action")
    table.close()
    return Utility({**default.weights, **weights}, {**default.costs, **costs})


def _nearest(epsilon: float, epsilons: tuple[float, ...]) -> float:
    def distance(other: float) -> float:
        if other == epsilon:
            return -1.0
        return abs(math.log(other / epsilon)) if 0 < other < math.inf and 0 < epsilon < math.inf else math.inf

    return min(epsilons, key=distance)
