"""Studies: everything that a comparison depends on; `policysim.study.study_reader` reads them from files.

The keys of a study file are listed at the class that they fill; docs/study-file.md is made of these lists. An attribute
that is called as a key holds what the file states there.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from envs.records import RecordSpace
from envs.scenario import Scenario
from envs.scenario_reader import FOLDER as SCENARIOS
from envs.toml_reader import text_of, unknown
from envs.treatment_response import ResponseModel
from policies.adjacency import Adjacency, AnyRecord, OneFeature, Sensitive
from policies.catalogue import CATALOGUE, make_policy, unknown_policy
from policies.html_table import html_table
from policies.optimal.optimum import OptimalSafe
from policies.policy import Policy
from policysim.files.keyed_digests import DataFiles
from policysim.study.stated_bounds import counted_outcomes, hidden_contraindications, named_outcomes, why_refused
from policysim.study.sweep import checked_epsilons
from policysim.utility import COSTS, Utility

if TYPE_CHECKING:
    from policysim.logs.log_source import LogSource
    from policysim.study.cohort_table import Cohort
    from policysim.study.noisy_cells import PastPatients

ADJACENCIES = (AnyRecord.name, OneFeature.name, Sensitive.name)
# What an observer sees: each treatment that is given, or what is published of it.
SEEN = ("treatment", "publication")
# What `Study.robust` is where the prior is in doubt as to how many patients have the condition.
PREVALENCE = "prevalence"


AnyStudy = TypeVar("AnyStudy", bound="Study")


@dataclass(frozen=True)
class Study:
    """Everything that a comparison depends on.

    Keys
    ----
    title : the study's name: of the file, or of the folder of a `study.toml`
        the question that reports show
    seed : 0
        for all random draws; a whole number
    related.REPORT : none
        a report beside this one about the same patients, with a sentence or two why its answer may differ; the pages
        are linked
    privacy.hidden_from : "anyone who sees the treatment", or the publication
        who must not learn the record, in words
    privacy.seen : "treatment"
        what an observer sees: `"treatment"`, such as a pharmacy, a bill or a ward; or only the `"publication"`, such as
        the reader of a register or a paper. Then each patient may get the best treatment, and the publication is
        randomised
    privacy.published_patients : 10000
        the number of patients in a publication; for the errors of its counts
    privacy.adjacency : "any-record"
        which records must look alike: any two (`"any-record"`), any two that differ in one feature (`"one-feature"`),
        or any two that differ only in hidden features (`"sensitive"`)
    privacy.sensitive
        the hidden features; `adjacency` is then `"sensitive"`
    privacy.public
        in place of `adjacency` and `sensitive`: the public features, such as `["sex"]`; all others are hidden.
        Contraindications may read public features only, because an observer sees who gets a treatment
    privacy.epsilon : 1.0
        the ε of the printed table; the nearest of `epsilons` is taken
    privacy.epsilons : 24 values from 0.05 to 20
        the ε of the curve: numbers from 1e-50 to 1e50, 0, or inf
    compare.policies : best-fixed, exponential, exponential-fitted, randomized-response, optimal-safe, optimal
        the printed policies, by name; without `optimal-safe` if no outcome leads. `greedy`, `best-fixed` and `uniform`
        are always in table and figures
    compare.by : none
        features; reports show each level as a group
    compare.robust : "prevalence"; for a log or a cohort, none
        the priors over which `optimal-robust` is the best in the worst case: `"prevalence"` (for a scenario: ⅓, ½, 1, 2
        and 3 times the assumed share of patients with the condition), or a feature, each level of which is a group of
        patients
    compare.at_most.OUTCOME : `{ LEAD = "one for all" }`
        the most of an outcome per patient, on average, under `optimal-safe`: a number ≥ 0, or `"one for all"`, which is
        as much as under the best single treatment for everyone. A scenario has its outcomes, `symptoms` or `costs`; a
        log has `costs`. Reports mark other policies that break a bound
    capacity.TREATMENT : none
        the largest share of patients that may get a treatment under `optimal-safe`, in [0, 1]: `{ a3 = 0.2 }`. Other
        treatments have no limit; if all have one, the shares must sum to 1 or more

    Attributes
    ----------
    name : str
        The file's name without its ending, or its folder's if the file is called study.toml.
    text : str
        The file as it was read.
    files : mapping of relative path to bytes
        What is kept with a report so that its folder can be run again: the study, and the scenario if that is a file
        of its own. Empty where they would not find each other there, and for data of patients, who are not copied.
    space : RecordSpace
        All records that patients may have, which are public.
    seen : str
        One of `SEEN`.
    adjacency : str
        One of `ADJACENCIES`.
    sensitive : tuple of str
        The hidden features if `adjacency` is "sensitive".
    public : tuple of str
        The features that were declared public, so that `sensitive` is all the others; empty if none were.
    epsilons : tuple of float
        Those of the curve, rising.
    robust : str or None
        None for none.
    at_most : mapping of str to float or "one for all"
        The most of an outcome per patient, on average, of `outcomes`, under `optimal-safe`; empty for its default.
    capacity : mapping of str to float
        The largest share of patients that may get an action, under `optimal-safe`.
    """

    name: str
    text: str
    files: Mapping[str, bytes]
    title: str
    hidden_from: str
    seen: str
    published_patients: int
    adjacency: str
    sensitive: tuple[str, ...]
    public: tuple[str, ...]
    epsilon: float
    epsilons: tuple[float, ...]
    policies: tuple[str, ...]
    by: tuple[str, ...]
    robust: str | None
    seed: int
    related: Mapping[str, str]
    at_most: Mapping[str, float | str] = field(default_factory=dict, kw_only=True)
    capacity: Mapping[str, float] = field(default_factory=dict, kw_only=True)

    @property
    def space(self) -> RecordSpace:
        """All records that patients may have."""
        raise NotImplementedError

    @property
    def outcomes(self) -> tuple[str, ...]:
        """What its problem counts beside utility, per patient; nothing, where no model says more."""
        return ()

    @property
    def illness(self) -> tuple[str, ...]:
        """The flags among the features that make a patient ill: every flag, where no model says more."""
        return tuple(feature.name for feature in self.space.features if feature.flag)

    @property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def identity(self) -> dict[str, Any]:
        """What identifies this study, for a manifest: its name, its title, and digests of what describes no patient."""
        return {"study": {"name": self.name, "title": self.title, "sha256": self.digest}}

    @property
    def data(self) -> DataFiles:
        """The files of patients' data; none, where the patients are those of a model."""
        return DataFiles()

    @property
    def choices(self) -> dict[str, Any]:
        """What was chosen to be hidden and compared, for a manifest."""
        return {
            "adjacency": self.adjacency,
            "sensitive": list(self.sensitive),
            "epsilons": list(self.epsilons),
            "policies": list(self.policies),
            "by": list(self.by),
            "seed": self.seed,
        }

    def policy(self, name: str, epsilon: float = math.inf) -> Policy:
        """A policy of the catalogue as this study has it, `optimal-safe` within its bounds and capacities.

        Whatever is made by name from a study is made here.
        """
        bounds = {"at_most": dict(self.at_most) or None, "capacity": dict(self.capacity) or None}
        return make_policy(name, epsilon=epsilon, **(bounds if name == OptimalSafe.name else {}))

    @property
    def first_policies(self) -> list[Policy]:
        """Its policies at its smallest epsilon."""
        return [self.policy(name, self.epsilons[0]) for name in self.policies]

    def with_choices(
        self: AnyStudy,
        *,
        epsilons: Sequence[float] | None = None,
        policies: Sequence[str] | None = None,
        by: Sequence[str] | None = None,
        adjacency: str | None = None,
        sensitive: Sequence[str] | None = None,
        seed: int | None = None,
    ) -> AnyStudy:
        """The same study with other choices; ValueError names what does not exist.

        The policy "all" stands for every policy of the catalogue.
        The printed table is then about the epsilon of the study, or else the one nearest to it on the log scale.
        """
        changed = self
        if epsilons is not None:
            listed = checked_epsilons(epsilons)
            changed = replace(changed, epsilons=listed, epsilon=nearest_epsilon(self.epsilon, listed))
        if policies is not None:
            named = list(CATALOGUE) if "all" in policies else policies
            for name in named:
                if name not in CATALOGUE:
                    raise ValueError(unknown_policy(name))
            changed = replace(changed, policies=tuple(dict.fromkeys(named)))
        if by is not None:
            changed = replace(changed, by=self._features(by, "group"))
        if seed is not None:
            if seed < 0:
                raise ValueError(f"seed must be a whole number >= 0, got {seed}")
            changed = replace(changed, seed=seed)
        return changed._with_adjacency(adjacency, sensitive)

    def within(self: AnyStudy, at_most: Mapping[str, float | str]) -> AnyStudy:
        """The same study with other bounds, and with the policy that keeps them."""
        return replace(self, at_most=at_most, policies=tuple(dict.fromkeys([*self.policies, OptimalSafe.name])))

    def _with_adjacency(self: AnyStudy, adjacency: str | None, sensitive: Sequence[str] | None) -> AnyStudy:
        changed = self
        if sensitive:
            adjacency = adjacency or Sensitive.name
            hidden = self._features(sensitive, "feature")
            # The features that are hidden already may have been declared by those that are public.
            changed = changed if hidden == self.sensitive else replace(changed, sensitive=hidden, public=())
        if adjacency is not None:
            if adjacency not in ADJACENCIES:
                raise ValueError(unknown("adjacency", adjacency, ADJACENCIES))
            if adjacency == Sensitive.name and not changed.sensitive:
                raise ValueError("the adjacency sensitive needs the hidden features: --sensitive FEATURE")
            if adjacency != Sensitive.name and sensitive:
                raise ValueError(f"hidden features only go with the adjacency sensitive, not with {adjacency}")
            if adjacency != Sensitive.name:
                changed = replace(changed, sensitive=(), public=())
            changed = replace(changed, adjacency=adjacency)
        changed.require_hidden()
        return changed

    def require_hidden(self) -> None:
        """ValueError where what the study is made of cannot hide what is to be hidden."""

    def __repr__(self) -> str:
        """The question and how many records there are."""
        return f"{type(self).__name__}({self.name!r}, {self.space.size:,} records, {self.adjacency}): {self.title}"

    def _repr_html_(self) -> str:
        """What a notebook shows: the question, what is hidden from whom, and what is compared."""
        # By the shorter of the two lists that the study may give.
        hidden: list[tuple[str, object]] = [("hidden features", ", ".join(self.sensitive))] if self.sensitive else []
        apart = [("public features", ", ".join(self.public))] if self.public else hidden
        rows: list[tuple[str, object]] = [
            ("title", self.title),
            ("records", self.space.size),
            ("adjacency", self.adjacency),
            *apart,
            ("hidden from", self.hidden_from),
            ("ε", self.epsilon),
            ("ε of the curve", ", ".join(f"{epsilon:g}" for epsilon in self.epsilons)),
            ("policies", ", ".join(self.policies)),
            ("groups", ", ".join(self.by) or "none"),
            ("seed", str(self.seed)),
            ("SHA-256", self.digest),
        ]
        return html_table(f"study {self.name}", rows)

    def _features(self, names: Sequence[str], kind: str) -> tuple[str, ...]:
        for name in names:
            if name not in self.space.names:
                raise ValueError(unknown(kind, name, self.space.names))
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, kw_only=True, repr=False)
class ModelledStudy(Study):
    """A study of a model whose expected outcomes are exact: a scenario, or a cohort.

    Keys
    ----
    lead : `"death"`; of a cohort, none
        with a scenario or a cohort: the leading outcome. Reports show it first, `optimal-safe` bounds it, and so does
        `--max-extra-lead`. It is an outcome of the scenario, `symptoms` or `costs`; of a cohort any outcome with a
        weight, such as days in hospital
    utility.weights.OUTCOME : the scenario's
        the cost of an outcome, in units of utility, ≥ 0: `{ death = 20 }`. For a cohort it lists the columns that are
        outcomes, per patient; 0 for one that is only counted
    utility.costs.TREATMENT : the scenario's
        the cost of a treatment, in units of utility: `{ a1 = 0.1 }`, or less than 0 if it saves; 0 in a cohort or a log
        without it. In a log the utility of a row is its outcome minus the cost of its treatment

    Attributes
    ----------
    utility : Utility
        What outcomes and treatments cost.
    lead : str or None
        The outcome that leads, of `outcomes`: it is reported first, and `optimal-safe` keeps it. None for none.
    """

    utility: Utility
    lead: str | None = None

    @property
    def weights(self) -> dict[str, float]:
        """What each outcome weighs, in the order of the model."""
        raise NotImplementedError

    @property
    def lead_weight(self) -> float:
        """What one of the outcome that leads weighs; 0 where there is none, or it has no weight of its own."""
        return 0.0 if self.lead is None else self.utility.weight_of(self.lead)


@dataclass(frozen=True, kw_only=True, repr=False)
class ScenarioStudy(ModelledStudy):
    """A study of the patients of a scenario.

    Keys
    ----
    scenario : required, unless there is `data` or `cohort`
        a built-in scenario, or the path of a `.toml` file relative to this one

    Attributes
    ----------
    scenario : Scenario
        The patients and treatments.
    scenario_source : str
        The built-in name or the path that it was read from.
    """

    scenario: Scenario
    scenario_source: str

    @property
    def model(self) -> ResponseModel:
        """Made anew each time: its tables may be as long as the domain."""
        return ResponseModel(self.scenario)

    @property
    def weights(self) -> dict[str, float]:
        """Of the scenario's outcomes."""
        return {name: float(self.utility.weights.get(name, 0.0)) for name in self.scenario.outcomes}

    def require_hidden(self) -> None:
        """ValueError where contraindications read what is hidden."""
        read = hidden_contraindications(self.scenario, self.adjacency, self.sensitive)
        if read:
            raise ValueError(why_refused(read, self.epsilon))

    @property
    def space(self) -> RecordSpace:
        """The scenario's records."""
        return self.scenario.space

    @property
    def outcomes(self) -> tuple[str, ...]:
        """All that is counted of a patient (`policysim.study.stated_bounds.named_outcomes`)."""
        return named_outcomes(self.scenario)

    @property
    def counted(self) -> tuple[str, ...]:
        """What is counted of groups, too: the outcome that leads is."""
        names = counted_outcomes(self.scenario)
        return names if self.lead is None or self.lead in names else (*names, self.lead)

    @property
    def illness(self) -> tuple[str, ...]:
        """What treatment can change, and what makes death or an event likelier."""
        risks = [self.scenario.death.relative_risk, *(event.relative_risk for event in self.scenario.events.values())]
        known = {*self.scenario.transient, *(name for factors in risks for name in factors)}
        return tuple(feature.name for feature in self.space.features if feature.flag and feature.name in known)

    @property
    def identity(self) -> dict[str, Any]:
        """With the scenario, which the study only names: SHA-256 of its file's text."""
        source = self.scenario_source
        path = Path(source) if source.endswith(".toml") else (SCENARIOS / f"{source}.toml").resolve()
        digest = hashlib.sha256(text_of(path).encode()).hexdigest()
        redraws = self.scenario.redraws
        beside = {} if redraws is None else {"redraws_sha256": hashlib.sha256(redraws.text.encode()).hexdigest()}
        return {**super().identity, "scenario": self.scenario.name, "scenario_sha256": digest, **beside}


@dataclass(frozen=True, kw_only=True, repr=False)
class CohortStudy(ModelledStudy):
    """A study of a table of one's own: kinds of patients, with the mean outcomes of each under each treatment.

    Keys
    ----
    cohort
        kinds of patients with the mean outcomes of each under each treatment, in place of a scenario
    cohort.file : required
        a file (`.csv`, `.tsv`, `.txt` or `.dat`, which `.gz` or `.zst` may follow, or `.parquet`) with a row for each
        kind of patient and treatment, its path relative to this one. A column `allowed` (0 or 1) may say which
        treatments a kind may get, by public features only
    cohort.features : required
        the columns that define a kind. Every combination of hidden levels must have rows; if no patient has it, with 0
        patients
    cohort.treatment : required
        the column of the treatment; treatments are in the order of their first rows
    cohort.patients : required
        the column with the number of patients of this kind, equal in all its rows
    cohort.redraws : none
        a file with other versions of the numbers: the same rows again for each value of a column `draw`. Without it a
        report judges as stated
    cohort.header : true
        `header`, `separator`, `decimal` and `encoding` say how `file` and `redraws` are written if they are text, as in
        the table `data`
    cohort.separator : recognised
        what stands between columns
    cohort.decimal : recognised
        the decimal sign
    cohort.encoding : recognised
        the encoding
    cohort.cells : none
        in place of `file`, `patients` and `redraws`: the private cells of a log, a file that `policysim privatize STUDY
        --as cells` or `ps.private_cells` made. The outcome is `failures`, of weight 1
    cohort.source
        the source of the numbers, and their licence; every page prints it
    cohort.public : false
        `true` if anyone may have the files: a report's manifest then has their SHA-256. Otherwise its digests are under
        a key beside the data, `policysim-digest.key`

    Attributes
    ----------
    cohort : Cohort
        The table, and its versions.
    paths : tuple of Path
        Their files.
    source : str
        Where the numbers are from, in words; empty if nobody says it.
    past : PastPatients or None
        The patients whose private cells the table is made from; None for another table.
    public_data : bool
        Whether anyone may have the files.
    """

    cohort: Cohort
    paths: tuple[Path, ...]
    source: str = ""
    past: PastPatients | None = None
    public_data: bool = False

    @property
    def weights(self) -> dict[str, float]:
        """Of its outcomes."""
        return {name: float(self.utility.weights.get(name, 0.0)) for name in self.cohort.outcomes}

    def require_hidden(self) -> None:
        """DataError where a level of a hidden feature has no rows, or decides what is allowed."""
        self.cohort.require_hidden(self.sensitive if self.adjacency == Sensitive.name else self.space.names)

    @property
    def space(self) -> RecordSpace:
        """The combinations of levels."""
        return self.cohort.space

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The columns that have a weight, and what treatments cost."""
        return tuple(dict.fromkeys((*self.cohort.outcomes, COSTS)))

    @property
    def data(self) -> DataFiles:
        """The table, and its versions."""
        return DataFiles(self.paths, self.public_data)


@dataclass(frozen=True, repr=False)
class LoggedStudy(Study):
    """A study of patients in a log: who got which treatment, and what came of it.

    Keys
    ----
    data
        the log, in place of a scenario (see the table `data`)

    Attributes
    ----------
    log : LogSource
        Where the log is, and what its columns are; and what its treatments cost.
    """

    log: LogSource

    @property
    def outcomes(self) -> tuple[str, ...]:
        """What treatments cost, where they cost anything."""
        return (COSTS,) if self.log.costs else ()

    @property
    def utility_range(self) -> tuple[float, float]:
        """The lowest and the highest utility of a patient: of the outcomes, less what treatments cost."""
        (low, high), costs = self.log.utility_range, self.log.costs or (0.0,)
        return low - max(costs), high - min(costs)

    @property
    def space(self) -> RecordSpace:
        """The records of the declared features."""
        return self.log.space

    @property
    def data(self) -> DataFiles:
        """The log: one table, three, or many parts."""
        several = len(self.log.parts) > 1
        return DataFiles(self.log.parts if several else tuple(self.log.files.values()), self.log.public, several)


def require_scenario(study: Study) -> ScenarioStudy:
    """The same study; ValueError if its patients are those of a log or a cohort."""
    if isinstance(study, ScenarioStudy):
        return study
    made_of = "cohort" if isinstance(study, CohortStudy) else "log"
    raise ValueError(f"{study.name} is a study of a {made_of}: this needs the model of a scenario")


def build_adjacency(study: Study) -> Adjacency:
    """The adjacency of a study, over the features of its records."""
    space = study.space
    if study.adjacency == OneFeature.name:
        return OneFeature(space.shape)
    if study.adjacency == Sensitive.name:
        return Sensitive(space.shape, tuple(space.axis(name) for name in study.sensitive))
    return AnyRecord()


def nearest_epsilon(epsilon: float, epsilons: tuple[float, ...]) -> float:
    """The one of `epsilons` that is nearest to another on the log scale."""
    if epsilon in epsilons or not 0 < epsilon < math.inf:
        return epsilon if epsilon in epsilons else epsilons[0]
    finite = [other for other in epsilons if 0 < other < math.inf]
    return min(finite, key=lambda other: abs(math.log(other / epsilon))) if finite else epsilons[0]
