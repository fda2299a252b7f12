"""Study files read and checked: every mistake by its line. The keys are listed at the classes of `declared`."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from envs.scenario import DEATH, StatedRedraws
from envs.scenario_reader import load_scenario
from envs.toml_reader import (
    NOT_NEGATIVE,
    PROBABILITY,
    SIZES,
    InputFileError,
    TomlTable,
    is_epsilon,
    open_toml,
    text_of,
    unknown,
)
from policies.adjacency import Sensitive
from policies.catalogue import CATALOGUE, DEFAULT_POLICIES, WITHOUT_LEAD, unknown_policy
from policysim.errors import OutputError
from policysim.files.csv_format import RECOGNISED
from policysim.files.terminal import json_text
from policysim.files.whole_files import is_unfinished
from policysim.logs.data_section import read_data, read_format
from policysim.numbers import enough
from policysim.study.declared import (
    ADJACENCIES,
    PREVALENCE,
    SEEN,
    CohortStudy,
    LoggedStudy,
    ScenarioStudy,
    Study,
    nearest_epsilon,
)
from policysim.study.stated_bounds import fault_of_bound, hidden_contraindications, named_outcomes, why_refused
from policysim.study.sweep import EPSILONS, checked_epsilons
from policysim.utility import COSTS, Utility

STUDY = "study.toml"
FOLDER = Path(__file__).parent / "studies"
# What names outcomes and treatments of a scenario or a cohort, and cannot be checked before that is read.
OF_THE_MODEL = ("utility", "capacity", "compare.at_most", "lead")
# What capacities sum to may fall short of serving everybody by rounding.
SHARE_ROUNDING = 1e-12
# What leads a scenario happens to a patient or does not.
NO_NUMBER = "; a number, such as days in hospital, cannot lead a scenario: write a table of your own, [cohort]"
# Reports that a script of the repository makes, and no study.
SCRIPTS = {
    **{
        name: f"examples/source_documents/{name.replace('-', '_')}.py"
        for name in ("adult-age-sex", "common-disease", "marital-status", "sock-groups")
    },
    **{
        name: f"examples/experiments/{name.replace('-', '_')}.py"
        for name in ("learning-on-private-columns", "randomise-or-decide", "stroke-calibration", "warfarin-known-doses")
    },
}


def study_names() -> list[str]:
    """The built-in studies."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def study_path(name: str | Path) -> Path:
    """The file of a built-in study, or the path itself; InputFileError if the name is neither."""
    if str(name).endswith(".toml"):
        return Path(name)
    if str(name) in study_names():
        return (FOLDER / f"{name}.toml").resolve()  # an installer may have put a link there
    if str(name) in SCRIPTS:
        raise InputFileError(f"{name} is no study; {SCRIPTS[str(name)]} makes this report", located=False)
    known = unknown("study", str(name), study_names())
    folder = Path(name) / STUDY
    hint = ""
    with suppress(OSError):  # of a name that is too long for one
        hint = f"; a folder: did you mean {folder.as_posix()}?" if folder.exists() else ""
    raise InputFileError(f"{known}, or a path that ends in .toml{hint}", located=False)


def load_study(name: str | Path, called: str = "") -> Study:
    """Read a study: a built-in name, or the path of a file that ends in .toml.

    It is `called` what its file or folder is called, unless that is given.

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
        study = _read_study(table, path, called or name_of_study(path))
    # Only now: leaving the block has raised whatever was wrong.
    return study  # noqa: RET504


def beside_log(log: Path, name: str, study: Study) -> dict[str, bytes]:
    """What stands beside a simulated log and says from which study it is, for `study_of`."""
    place = name if name in study_names() else os.path.relpath(study_path(name), log.parent)
    document = {"made_by": "policysim simulate", "study": place, "sha256": study.digest}
    return {_beside(log).name: json_text(document).encode()}


def check_simulated_log(log: Path) -> None:
    """OutputError if a log that a simulation is to write is there, and no simulation wrote it."""
    beside = _beside(log)
    if log.exists() and not (beside.exists() or is_unfinished(beside)):
        raise OutputError(f"{log.as_posix()}: is there already, and no simulation wrote it: name another file")


def study_of(log: Path) -> Study | None:
    """The study that a log was simulated from; None for a log of which nothing is known.

    Raises
    ------
    InputFileError
        If the study is not there any more, or is not what it was.
    """
    beside = _beside(log)
    try:
        document = json.loads(text_of(beside))
    except FileNotFoundError:
        if is_unfinished(beside):
            raise InputFileError(
                f"{log.as_posix()}: the run that wrote it was ended: simulate it again, or name its --study"
            ) from None
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise InputFileError(f"{beside.as_posix()}: cannot be read: {error}") from None
    name = document.get("study") if isinstance(document, dict) else None
    if not isinstance(name, str):
        raise InputFileError(f"{beside.as_posix()}: must name the study that {log.name} was simulated from")
    study = load_study(name if name in study_names() else log.parent / name)
    if study.digest != document.get("sha256"):
        raise InputFileError(
            f"{os.path.normpath(log.parent / name)}: has changed since {log.as_posix()} was simulated from it; name "
            "the study with --study",
            located=False,
        )
    return study


def _beside(log: Path) -> Path:
    return log.parent / f"{log.name}.study.json"


def _read_study(table: TomlTable, path: Path, name: str) -> Study:
    """A study of any kind, by what says who its patients are: a log, a cohort or a scenario."""
    study: Study
    if "data" in table:
        study = LoggedStudy(**_read_log(table, path, name))
    elif "cohort" in table:
        study = CohortStudy(**_read_cohort(table, path, name))
    else:
        _refuse_other_files(table, path)
        study = ScenarioStudy(**_read_scenario(table, path, name))
    table.close()
    table.file.raise_if_any()
    return study


def _refuse_other_files(table: TomlTable, path: Path) -> None:
    """Name what to do with a scenario, and with a file of policysim 0.1 that is a script now."""
    if "scenario" not in table and "features" in table.values and "treatments" in table.values:
        raise InputFileError(
            f"{path.as_posix()}: is a scenario, and no study: it describes patients and treatments. "
            f'Put scenario = "{path.name}" into a study.toml beside it, and name that file',
            located=False,
        )
    for former in ("analysis", "source"):
        if former in table.values:
            script = SCRIPTS.get(str(table.values[former]), "a script in examples/source_documents")
            table.fail(f"is no key of a study; {script} makes this report", former)
            table.file.raise_if_any()


def _read_log(table: TomlTable, path: Path, name: str) -> dict[str, Any]:
    table.refuse("scenario", "a study has a scenario or a table data, not both")
    table.refuse("lead", "only goes with a scenario or a cohort: in a log the utility leads")
    table.table("utility").refuse("weights", "does not go with a log: weigh its outcomes in [data], outcome = {...}")
    log = read_data(table.table("data"), path.parent)
    actions, compare, utility = list(log.arms), table.table("compare"), table.table("utility")
    costs: dict[str, float] = {}
    bounds: dict[str, Any] = {"at_most": {}, "capacity": {}}
    if actions:
        costs = utility.numbers("costs", actions, "action")
        if not any(costs.values()):
            compare.refuse("at_most", "bounds costs in a log: it needs [utility] costs, such as { pill = 0.1 }")
        bounds = _read_bounds(table, (COSTS,), actions)
    else:
        for section, key in ((utility, "costs"), (compare, "at_most"), (table, "capacity")):
            section.refuse(key, "needs [data.treatments], whose names it has")
    defaults = DEFAULT_POLICIES if any(bounds.values()) else WITHOUT_LEAD
    return {
        # Mistakes in the features are noted already; without any there is nothing to compare names with.
        **_read_shared(table, name, list(log.features) or None, defaults),
        **bounds,
        "log": replace(log, costs=tuple(costs.get(name, 0.0) for name in actions) if any(costs.values()) else ()),
    }


def _read_cohort(table: TomlTable, path: Path, name: str) -> dict[str, Any]:
    """A table of one's own. What the study says of it is read before the table is, and what depends on it after."""
    # Only such a study needs these modules.
    from policysim.files.data_table import read_table  # noqa: PLC0415
    from policysim.study.cohort_table import ALLOWED, DRAW, CohortColumns, read_cohort  # noqa: PLC0415
    from policysim.study.noisy_cells import FAILURES, PATIENTS, read_cells  # noqa: PLC0415

    table.refuse("scenario", "a study has a scenario or a table cohort, not both")
    section = table.table("cohort")
    cells = "cells" in section
    features = section.words("features")
    if not features:
        section.fail("must name the columns that define a kind of patients", "features")
    treatment, patients = section.column("treatment"), PATIENTS if cells else section.column("patients")
    named = [section.column("cells")] if cells else [section.column("file"), section.text("redraws", "")]
    files = [path.parent / file for file in named if file]
    # Private cells are a file of policysim's own, whose form nobody needs to state.
    form = RECOGNISED if cells else read_format(section)
    source, public = section.text("source", ""), section.flag("public", default=False)
    shared = _read_shared(table, name, features or None, DEFAULT_POLICIES if "lead" in table else WITHOUT_LEAD)
    table.close(*OF_THE_MODEL)
    table.file.raise_if_any()
    others = {*features, treatment, patients, ALLOWED, DRAW}
    tables = [] if cells else [read_table(file, stated=form) for file in files]
    columns = [FAILURES] if cells else [column for column in tables[0].columns if column not in others]
    default = {FAILURES: 1.0} if cells else {}
    utility = table.table("utility")
    weights = utility.numbers("weights", columns, "outcome", within=NOT_NEGATIVE) or default
    if not weights:
        utility.fail(
            "must name the columns that are outcomes, and the cost of one, such as { relapse = 100 }", "weights"
        )
    lead = _read_lead(table, list(weights))
    table.file.raise_if_any()
    hidden = shared["sensitive"] if shared["adjacency"] == Sensitive.name else features
    names = CohortColumns(features, treatment, patients, list(weights))
    past = None
    if cells:
        cohort, past = read_cells(files[0], features, treatment, seed=shared["seed"])
        source = source or f"noisy counts of patients, each of whom ε = {enough(past.epsilon, 6):g} hides"
    else:
        cohort = read_cohort(tables[0], names, hidden=hidden, redraws=next(iter(tables[1:]), None))
    costs = utility.numbers("costs", cohort.actions, "action")
    return {
        **shared,
        **_read_bounds(table, tuple(dict.fromkeys((*cohort.outcomes, COSTS))), cohort.actions),
        "lead": lead or None,
        "cohort": cohort,
        "past": past,
        "paths": tuple(files),
        "source": source,
        "public_data": public,
        "utility": Utility(weights, costs),
    }


def _read_scenario(table: TomlTable, path: Path, name: str) -> dict[str, Any]:
    named = table.text("scenario")
    source = str(path.parent / named) if named.endswith(".toml") else named
    scenario = None
    if source:
        try:
            scenario = load_scenario(source)
        except InputFileError as error:
            table.file.merge(error, "scenario")
    elif not table.wrong("scenario"):
        table.refuse("scenario", 'must be the name of a built-in scenario or of a file, such as "ward.toml", got ""')
    shared = _read_shared(table, name, list(scenario.space.names) if scenario else None, DEFAULT_POLICIES)
    if scenario is None:
        table.close(*OF_THE_MODEL)
        table.file.raise_if_any()
    assert scenario is not None  # or there was a mistake
    default, utility = Utility.of(scenario), table.table("utility")
    weights = utility.numbers("weights", scenario.outcomes, "outcome", within=NOT_NEGATIVE)
    costs = utility.numbers("costs", scenario.actions, "action")
    read = hidden_contraindications(scenario, shared["adjacency"], shared["sensitive"])
    if read and not table.wrong("privacy"):
        stated = [("privacy", key) for key in ("public", "sensitive", "adjacency") if key in table.table("privacy")]
        key = [*stated, ("privacy",) if "privacy" in table else ("scenario",)][0]
        table.fail(why_refused(read, shared["epsilon"]), *key)
    return {
        **shared,
        **_read_bounds(table, named_outcomes(scenario), scenario.actions),
        "lead": _read_lead(table, named_outcomes(scenario), NO_NUMBER) or DEATH,
        "files": _kept_files(table, path, scenario.redraws),
        "scenario": scenario,
        "scenario_source": source,
        "utility": Utility({**default.weights, **weights}, {**default.costs, **costs}),
    }


def _read_shared(table: TomlTable, name: str, features: list[str] | None, defaults: Sequence[str]) -> dict[str, Any]:
    """What every study has; `features` are those of its records, or None where they could not be read.

    `defaults` are the policies where none are named.
    """
    privacy, compare, related = table.table("privacy"), table.table("compare"), table.table("related")
    epsilons = privacy.list_of("epsilons", is_epsilon, SIZES, [])
    listed = checked_epsilons(epsilons) if epsilons else EPSILONS
    policies = compare.words("policies", defaults)
    for position, policy in enumerate(policies):
        if policy not in CATALOGUE:
            compare.fail(unknown_policy(policy), "policies", position)
    # The prevalence where a scenario has one, or a feature.
    known = [PREVALENCE] if "scenario" in table.values else []
    robust = compare.text("robust", "".join(known))
    if "robust" in compare and features is not None and robust not in (*known, *features):
        compare.fail(unknown("prior", robust, [*known, *features]), "robust")
    # Names of folders beside a report's own, and a text for each.
    for report in related:
        if not re.fullmatch(r"\w[\w-]*", report):
            related.fail("must be the name of a report beside this one: letters, digits, - and _", report)
    seen = privacy.choice("seen", SEEN, SEEN[0])
    return {
        "name": name,
        "text": table.file.text,
        "files": {},
        "title": table.text("title", name),
        "hidden_from": privacy.text("hidden_from", f"anyone who sees the {seen}"),
        "seen": seen,
        "published_patients": privacy.integer("published_patients", 10_000, low=1),
        **_read_adjacency(privacy, features),
        "epsilon": nearest_epsilon(privacy.number("epsilon", 1.0, within=(0, math.inf)), listed),
        "epsilons": listed,
        "policies": tuple(dict.fromkeys(policies)),
        "by": compare.names("by", features, "group"),
        "robust": robust or None,
        "seed": table.integer("seed", 0),
        "related": {report: related.text(report) for report in related},
    }


def name_of_study(path: Path) -> str:
    """What the study of a file is called: its folder's name if the file is called study.toml."""
    return path.parent.resolve().name if path.name == STUDY else path.stem


def _kept_files(table: TomlTable, path: Path, redraws: StatedRedraws | None) -> dict[str, bytes]:
    """The study, its scenario and that one's redraws, under the names that they have, if these are below the study."""
    name = table.values["scenario"]
    study = {STUDY: table.file.text.encode()}
    if not name.endswith(".toml"):
        return study
    folder, scenario = path.parent.resolve(), (path.parent / name).resolve()
    if Path(name).is_absolute() or scenario == folder / STUDY:
        return {}
    kept = {scenario: scenario.read_bytes()}
    if redraws is not None:
        kept[(scenario.parent / redraws.file).resolve()] = redraws.text.encode()
    if not all(path.is_relative_to(folder) for path in kept):
        return {}
    return {**study, **{path.relative_to(folder).as_posix(): content for path, content in kept.items()}}


def _read_adjacency(privacy: TomlTable, features: list[str] | None) -> dict[str, Any]:
    """The adjacency, its hidden features, and those that are declared public in place of them."""
    adjacency = privacy.choice("adjacency", ADJACENCIES, ADJACENCIES[0])
    sensitive, public = privacy.names("sensitive", features, "feature"), privacy.names("public", features, "feature")
    if "public" not in privacy:
        if adjacency == "sensitive" and "sensitive" not in privacy:
            privacy.fail('sensitive is missing: adjacency "sensitive" needs the list of hidden features', "adjacency")
        if "sensitive" in privacy and "adjacency" not in privacy:
            adjacency = Sensitive.name
        elif adjacency != "sensitive" and "sensitive" in privacy:
            privacy.fail('only goes with adjacency = "sensitive"', "sensitive")
        return {"adjacency": adjacency, "sensitive": sensitive, "public": ()}
    # Public features hide all the others.
    for other in ("sensitive", "adjacency"):
        if other in privacy and privacy.values[other] != Sensitive.name:
            privacy.fail(f"does not go with {other}: public features hide all the others, and say so alone", "public")
    listed = privacy.values["public"]
    for position, name in enumerate(listed if isinstance(listed, list) else []):
        if name in listed[:position]:
            privacy.fail(f"{name!r} is named twice", "public", position)
    if features is not None and len(public) == len(features):
        privacy.fail("nothing is left to hide: every feature is public", "public")
    hidden = tuple(name for name in features or () if name not in public)
    return {"adjacency": Sensitive.name, "sensitive": hidden, "public": public}


def _read_lead(table: TomlTable, outcomes: Sequence[str], instead: str = "") -> str:
    """The outcome that leads, of those that are known; "" where the study names none. `instead` ends a refusal."""
    lead = table.text("lead", "")
    if outcomes and "lead" in table and not table.wrong("lead") and lead not in outcomes:
        table.fail(f"{unknown('outcome', lead, outcomes)}{instead}", "lead")
    return lead


def _read_bounds(table: TomlTable, outcomes: Sequence[str], actions: Sequence[str]) -> dict[str, Any]:
    """What the policy within bounds keeps: the most of an outcome, and the largest share of an action."""
    bounds = table.table("compare").table("at_most")
    at_most: dict[str, float | str] = {}
    for name in bounds:
        value = bounds.values[name]
        if fault := fault_of_bound(name, value, outcomes):
            bounds.fail(fault, name)
        else:
            at_most[name] = value if isinstance(value, str) else float(value)
    capacity = table.numbers("capacity", actions, "action", within=PROBABILITY)
    places = math.fsum(capacity.values())
    if capacity and not (set(capacity) < set(actions) or places >= 1 - SHARE_ROUNDING):
        limited = f"every treatment is limited, and the shares sum to {places:g}, which is below 1"
        table.fail(f"cannot serve everybody: {limited}", "capacity")
    return {"at_most": at_most, "capacity": capacity}
