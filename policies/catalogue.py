"""The policies by name: the built-in ones, what each is and whom to cite, and those of other packages.

Another package adds a mechanism by the entry point group `policysim.policies`; the value is the class, a `Policy`:

    [project.entry-points."policysim.policies"]
    coin = "their_package:Coin"

Its name here is `Coin.name`. It is then a policy like any other: in studies, on the command line, in reports and
figures. It is described by its name and the first line of its docstring. Its privacy is not taken on trust: see
`policysim.study.checks.checked_tables`.
"""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from threading import RLock
from typing import Any

from policies.exponential import Exponential, ExponentialFitted
from policies.noisy_max import PermuteAndFlip, ReportNoisyMax
from policies.optimal.optimum import OPTIMAL_DAILY, Optimal, OptimalRobust, OptimalSafe, catalogue_name
from policies.policy import Policy, class_fault, in_one_line
from policies.randomized_response import RandomizedFeatures, RandomizedResponse
from policies.reference import BestFixed, Greedy, Uniform

_CLASSES: tuple[type[Policy], ...] = (
    Greedy,
    BestFixed,
    Uniform,
    Exponential,
    ExponentialFitted,
    PermuteAndFlip,
    ReportNoisyMax,
    RandomizedResponse,
    RandomizedFeatures,
    Optimal,
    OptimalSafe,
    OptimalRobust,
)
# What is compared unless something else is asked for: one for all, the textbook, the fitted one, the simplest
# mechanism, the best that costs no more of the lead than one for all, and the limit.
DEFAULT_POLICIES = (
    BestFixed.name,
    Exponential.name,
    ExponentialFitted.name,
    RandomizedResponse.name,
    OptimalSafe.name,
    Optimal.name,
)
# Where no outcome leads, as in a log, or none of one decision, as over days.
WITHOUT_LEAD = tuple(name for name in DEFAULT_POLICIES if name != OptimalSafe.name)
GROUP = "policysim.policies"
NAME = "[a-z0-9]+(-[a-z0-9]+)*"
# Words of the command line and rows of tables: "all"; "optimal-achievable" and the like; "best-schedule" and the like.
RESERVED = "all|(optimal|best)-.*"


@dataclass(frozen=True)
class Description:
    """What a policy is.

    Attributes
    ----------
    words : str
        What completes "treatments are chosen by".
    formula : str
        In one line; "" for none.
    works : sequence of str
        What to cite for it, as named in a sentence; in full in `REFERENCES`.
    """

    words: str
    formula: str = ""
    works: Sequence[str] = ()


_TEXTS = tomllib.loads(Path(__file__).with_name("descriptions.toml").read_text(encoding="utf-8"))
DESCRIPTIONS: Mapping[str, Description] = {name: Description(**entry) for name, entry in _TEXTS["policies"].items()}
# The works that are cited, in full.
REFERENCES: Mapping[str, str] = _TEXTS["works"]


class PluginError(ValueError):
    """What another package offers is no policy that can be used; str() says why."""


@dataclass(frozen=True)
class Plugin:
    """A policy of another package, and the name and version of that package."""

    kind: type[Policy]
    package: str
    version: str


class Catalogue(Mapping[str, type[Policy]]):
    """The policies by name, the built-in ones first.

    Other packages are imported when they are first needed: when a name is asked for that is not built in, or all names
    are. One that is broken is left out with one line on the log of "policysim" (standard error, unless the program
    says otherwise), and breaks nothing else.
    """

    def __init__(self, built_in: Iterable[type[Policy]]) -> None:
        """Of the built-in classes, in their order."""
        self.built_in: Mapping[str, type[Policy]] = {kind.name: kind for kind in built_in}
        self._plugins: dict[str, Plugin] | None = None
        self._lock = RLock()

    def __getitem__(self, name: str) -> type[Policy]:
        """The class of a name; KeyError for an unknown one."""
        return self.built_in[name] if name in self.built_in else self.plugins[name].kind

    def __iter__(self) -> Iterator[str]:
        """All names."""
        yield from self.built_in
        yield from self.plugins

    def __len__(self) -> int:
        """How many there are."""
        return len(self.built_in) + len(self.plugins)

    @property
    def plugins(self) -> Mapping[str, Plugin]:
        """The policies of other packages, by name; loaded once."""
        with self._lock:
            if self._plugins is not None:
                return self._plugins
            # Set first: a package may itself look into the catalogue while it is imported.
            plugins = self._plugins = {}
            points = ((point.dist.name if point.dist else "?", point) for point in entry_points(group=GROUP))
            # In an order that does not depend on where packages are installed.
            for package, point in sorted(points, key=lambda pair: (pair[0], pair[1].name)):
                try:
                    kind = _loaded(point)
                    taken = {**self.built_in, **{name: plugin.kind for name, plugin in plugins.items()}}
                    if kind.name in taken and taken[kind.name] is not kind:
                        whose = "built in" if kind.name in self.built_in else f"from {plugins[kind.name].package}"
                        raise PluginError(f"its name {kind.name!r} is taken: a policy of this name is {whose}")
                except PluginError as error:
                    logging.getLogger("policysim").warning(
                        "policysim: left out the policy %r of the package %s (%s): %s.",
                        *(point.name, package, point.value, error),
                    )
                else:
                    plugins[kind.name] = Plugin(kind, package, point.dist.version if point.dist else "?")
            return plugins

    def versions(self, names: Iterable[str]) -> dict[str, str]:
        """The packages, with their versions, that some of these policies are from; the built-in ones need none."""
        others = [self.plugins[name] for name in names if name not in self.built_in and name in self.plugins]
        return {plugin.package: plugin.version for plugin in others}


def _loaded(point: EntryPoint) -> type[Policy]:
    """The class of an entry point; PluginError for what cannot be used."""
    try:
        kind = point.load()
    # Whatever happens in a foreign module, even that it ends the program.
    except (Exception, SystemExit) as error:
        raise PluginError(in_one_line(error)) from error
    if not (isinstance(kind, type) and issubclass(kind, Policy)):
        raise PluginError("it is no subclass of policies.policy.Policy")
    name = getattr(kind, "name", None)
    if not isinstance(name, str):
        raise PluginError(f"the class {kind.__name__} has no name")
    if not re.fullmatch(NAME, name):
        raise PluginError(f"its name must be lower-case letters and digits with hyphens between, got {name!r}")
    if re.fullmatch(RESERVED, name):
        raise PluginError(f"its name {name!r} is reserved, as all, optimal-… and best-… are")
    fault = class_fault(kind)
    if fault:
        raise PluginError(fault)
    try:
        works = hash(replace(kind(1.0), epsilon=2.0)) is not None and replace(kind(1.0), epsilon=2.0).epsilon == 2
    except Exception as error:
        raise PluginError(f"{kind.__name__}(1.0) cannot be made: {in_one_line(error)}") from error
    if not works:
        raise PluginError(f"{kind.__name__}(epsilon) does not keep its epsilon")
    return kind


CATALOGUE = Catalogue(_CLASSES)


def is_built_in(policy: Policy) -> bool:
    """Whether a policy is of one of the built-in classes; of no other is it believed what it says of itself."""
    return type(policy) in _CLASSES


def make_policy(name: str, *, epsilon: float = float("inf"), **options: Any) -> Policy:
    """Make a policy by name.

    Parameters
    ----------
    name : str
        One of `CATALOGUE`.
    epsilon : float, optional
        The privacy parameter, >= 0; by default inf (no privacy). greedy, best-fixed and uniform ignore it.
    **options
        What that policy takes, such as `base_measure` for the exponential mechanism.

    Raises
    ------
    ValueError
        For an unknown name (the nearest one is suggested) or an option out of range.
    TypeError
        For an option that this policy does not take.

    Examples
    --------
    >>> from policies import AnyRecord, DecisionProblem
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> make_policy("exponential", epsilon=1.0).probabilities(problem).round(4).tolist()
    [[0.3775, 0.6225], [0.6225, 0.3775]]
    """
    if name not in CATALOGUE:
        raise ValueError(unknown_policy(name))
    return CATALOGUE[name](epsilon, **options)


def unknown_policy(name: str) -> str:
    """The message for a name that is not in the catalogue."""
    # What a policy is called over days means that policy; else the nearest name.
    near = [catalogue_name(name)] if name == OPTIMAL_DAILY else get_close_matches(name, CATALOGUE, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown policy {name!r}; {hint}known: {', '.join(CATALOGUE)}."


def describe(name: str) -> Description:
    """What a policy of the catalogue is; of another package its name and the first line of its docstring."""
    if name in DESCRIPTIONS:
        return DESCRIPTIONS[name]
    kind = CATALOGUE[name]
    text = (kind.__doc__ or "").strip()
    # A dataclass without a docstring has its signature in place of one.
    summary = "" if text.startswith(f"{kind.__name__}(") else text.partition("\n")[0].rstrip(".")
    return Description(f"the mechanism “{name}”" + (f" ({summary})" if summary else ""))


def mechanism_words(name: str) -> str:
    """A policy in words, with its formula and the works that it is from."""
    description = describe(name)
    formula = f": {description.formula}" if description.formula else ""
    sentence = f"Treatments are chosen by {description.words}{formula}."
    return " ".join([sentence, *(REFERENCES[work] for work in description.works)])
