"""The study file that policysim init writes: every guess has a comment that says CHECK, and why."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

import numpy as np

from policies.catalogue import WITHOUT_DEATHS
from policysim.files.bad_rows import level_of
from policysim.files.whole_folders import toml_list, toml_number, toml_string, toml_text
from policysim.logs.column_names import rank
from policysim.logs.guess_columns import Candidate, Features, as_feature, round_range
from policysim.logs.guess_roles import Roles
from policysim.logs.log_source import EQUAL, ESTIMATE, EXCLUDE, JOINT, THREE_TABLES
from policysim.logs.outcomes import FollowedUp

CONTROLS = ("placebo", "control", "none", "untreated", "standard", "usual", "soc", "no", "observation", "obs")
YES = ("1", "y", "yes")
YES_AND_NO = ({"0", "1"}, {"n", "y"}, {"no", "yes"})
PRIVACY = (
    "[privacy]",
    'hidden_from = "anyone who sees the published treatment"  # CHECK',
    'adjacency = "any-record"   # or "one-feature", or "sensitive" with sensitive = [features that must be hidden]',
    "epsilon = 1.0              # the printed table",
    f"epsilons = {toml_list((0.1, 0.2, 0.5, 1, 2, 5, 10))}  # the curve",
)


def study_text(
    files: Sequence[str], stem: str, study: str, roles: Roles, features: Features, *, header: bool = True
) -> str:
    """The text of a study.

    Parameters
    ----------
    files : sequence of str
        The data, as the study names them: one file, or features, actions and outcomes.
    stem : str
        What they are called in the title.
    study : str
        The study's own path, for the command that comes next.
    header : bool
        Whether the file's first line names its columns.
    """
    treatments = [f"{toml_text(value)} = {toml_string(name)}" for value, name in treatment_names(roles)]
    names, n_rows = [candidate.binning.name for candidate in features.chosen[:2]], roles.treatment.n_rows
    sections = [
        [
            f"# A study of {toml_safe(JOINT.join(files))} ({n_rows:,} rows), written by policysim init.",
            "# Lines with CHECK are guesses from names and values: read each one before you believe a result.",
            f"title = {toml_string(f'What does choosing treatments privately cost the patients of {stem}?')}",
        ],
        _data(files, roles, header=header),
        [
            "[data.treatments]",
            "# CHECK names as the report shall show them; the first is the reference.",
            *treatments,
        ],
        _features(features),
        _left_out(roles, features),
        PRIVACY,
        [
            "[compare]",
            f"policies = {toml_list(WITHOUT_DEATHS)}",
            f"# by = {toml_list(names)}  # report each level of these features",
        ],
        [f"# Type next: policysim compare {toml_safe(shlex.quote(study))}"],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def toml_safe(text: str) -> str:
    """Text for a comment: what cannot be printed is escaped."""
    return text if text.isprintable() else toml_string(text)


def treatment_names(roles: Roles) -> list[tuple[str, str]]:
    """Value and name of each treatment, one that sounds like a control first; numbers get a word.

    Of columns of yes and no that make it together, the name is that of those with a yes, single ones first.
    """
    treatment = roles.treatment
    values = [str(level_of(key)) for key in treatment.values]
    if not roles.joined:
        names = [f"arm {value}" if treatment.is_numeric else value for value in values]
    else:
        first = [int(np.flatnonzero(treatment.codes == place)[0]) for place in range(len(values))]
        given = [[str(level_of(part.values[part.codes[row]])) for part in roles.joined] for row in first]
        columns = [part.name for part in roles.joined]
        if all({str(level_of(value)).lower() for value in part.values} in YES_AND_NO for part in roles.joined):
            chosen = [[place for place, word in enumerate(words) if word.lower() in YES] for words in given]
            order = sorted(range(len(values)), key=lambda place: (len(chosen[place]), chosen[place]))
            own = [f"arm {name}" if name.isdecimal() else name for name in columns]
            values = [values[place] for place in order]
            names = [" + ".join(own[column] for column in chosen[place]) or "none" for place in order]
        else:
            names = [JOINT.join(map(" ".join, zip(columns, words, strict=True))) for words in given]
    return sorted(zip(values, names, strict=True), key=lambda pair: rank(pair[1], CONTROLS) is None)


def _data(files: Sequence[str], roles: Roles, *, header: bool) -> list[str]:
    named = JOINT.join(f"{role} = {toml_string(file)}" for role, file in zip(THREE_TABLES, files, strict=False))
    lines = ["[data]", f"file = {toml_string(files[0])}" if len(files) == 1 else f"file = {{ {named} }}"]
    lines += [] if header else ["header = false"]
    if roles.id:
        lines += _guess(f"id = {toml_string(roles.id.name)}", ["all values are distinct, as patients' ids must be"])
    treatment = toml_list([part.name for part in roles.joined]) if roles.joined else toml_string(roles.treatment.name)
    lines += _guess(f"treatment = {treatment}", [])
    lines += _guess(f"propensity = {toml_string(roles.propensity)}", _why_propensity(roles))
    return [*lines, *(_followed(roles.followed, roles) if roles.followed else _outcome(roles)), *_missing(roles)]


def _why_propensity(roles: Roles) -> list[str]:
    arms = roles.treatment
    sep = "; " if roles.joined else ", "
    counts = sep.join(f"{toml_safe(str(level_of(v)))}: {n:,}" for v, n in zip(arms.values, arms.counts, strict=True))
    chance = f"p {'< 0.001' if roles.equal_probability < 0.001 else f'= {roles.equal_probability:.2g}'}"
    facts = [f"patients by treatment: {counts}", f"chi-square test of equal allocation: {chance}"]
    if roles.propensity == EQUAL:
        return [*facts, '"equal" is right if patients were randomised equally; else a column, or "estimate"']
    if roles.propensity == ESTIMATE:
        return [
            *facts,
            '"estimate" predicts the treatment from the features: whatever else decided it may confound every result',
            "if patients were randomised unequally, add a column with the probability of the treatment they got",
        ]
    return ["this column must hold the probability with which the patient got the treatment that is logged", *facts]


def _followed(followed: FollowedUp, roles: Roles) -> list[str]:
    """The outcome "free of the event at the horizon"."""
    values = [str(level_of(value)) for value in roles.treatment.values]
    counts = dict(zip(values, followed.at_risk, strict=True))
    at_risk = ", ".join(f"{toml_safe(name)} {counts[value]:,}" for value, name in treatment_names(roles))
    return [
        "# the outcome is to be free of the event at the horizon; 1 is the event, 0 that follow-up ended before",
        f"time = {toml_string(followed.time.name)}  # CHECK",
        f"event = {toml_string(followed.event.name)}  # CHECK",
        *_guess(
            f"horizon = {toml_number(followed.horizon)}",
            [
                f"the latest time, rounded down, to which enough patients of each arm are followed: {at_risk}",
                "an earlier one that means something, such as a year, may be better; choose it before you see results",
            ],
        ),
    ]


def _outcome(roles: Roles) -> list[str]:
    outcome = roles.outcome
    if outcome is None:
        return []
    low_high = round_range(outcome)
    weight = -1.0 if roles.harmful else 1.0
    says = "1 sounds harmful: the weight is -1" if roles.harmful else "more is taken to be better"
    if "cens" in outcome.name.lower():
        says += "; in some files 1 means censored, that is no event: then the weight is 1"
    facts = [says, "several outcomes are weighted, such as { success = 1.0, death = -5.0 }; the reward is the sum"]
    lines = _guess(f"outcome = {{ {toml_text(outcome.name)} = {toml_number(weight)}.0 }}", facts)
    if roles.doubt:
        lines += _guess(f"outcome_checked = {toml_list([outcome.name])}", [toml_safe(roles.doubt)])
    if low_high != (0.0, 1.0):
        low, high = sorted(weight * end for end in low_high)
        why = [f"what the reward can be, from knowledge; the values are {outcome.low:g} to {outcome.high:g}"]
        lines += _guess(f"range = {toml_list([low, high])}", why)
    return lines


def _missing(roles: Roles) -> list[str]:
    """What is done with rows that have no treatment or no outcome."""
    followed = (roles.followed.time, roles.followed.event) if roles.followed else ()
    reasons = [
        f"{column.n_missing:,} of {column.n_rows:,} rows have no {toml_safe(toml_text(column.name))}"
        for column in (roles.treatment, roles.outcome, *followed)
        if column is not None and column.n_missing
    ]
    if not reasons:
        return []
    if roles.outcome and roles.outcome.n_missing:
        reasons.append('"worst" gives rows without an outcome the lowest reward')
    return _guess(f"missing = {toml_string(EXCLUDE)}", reasons)


def _features(features: Features) -> list[str]:
    sizes = " × ".join(str(candidate.size) for candidate in features.chosen)
    lines = [
        "[data.features]",
        "# CHECK that each was known before treatment. All levels and cuts are public: for a real release they must",
        "# come from knowledge and not be read off the data, as these were (cuts at about quartiles).",
        *(_declared(candidate) for candidate in features.chosen),
        f"# These make {features.n_records:,} records: {sizes}.",
    ]
    if features.further:
        lines += [
            "# CHECK Left out to keep that small. Those above spread the patients more evenly; you may know better.",
            *(f"# {_declared(candidate)}" for candidate in features.further),
        ]
    return lines


def _declared(candidate: Candidate) -> str:
    binning = candidate.binning
    bins = f"levels = {toml_list(binning.feature.levels)}" if binning.levels else f"cuts = {toml_list(binning.cuts)}"
    bins += ", missing = true" if binning.missing else ""
    counts = ", ".join(f"{count:,}" for count in candidate.counts)
    gaps = '; "NA" stands for missing values' if candidate.missing_level and binning.levels else ""
    return f"{toml_text(binning.name)} = {{ {bins} }}  # CHECK patients: {counts}{gaps}"


def _left_out(roles: Roles, features: Features) -> list[str]:
    lines = []
    if roles.later:
        lines.append(
            "# Left out: probably known only after treatment, or they tell it. No treatment may depend on these."
        )
        for column, reason in roles.later:
            candidate = as_feature(column)
            # Its declaration, if it could be a feature.
            said = _declared(candidate).partition("  # CHECK")[0] if candidate else toml_text(column.name)
            lines.append(f"# {said}  # CHECK {reason}")
    if features.unusable:
        lines.append("# Left out: of no use as features.")
        lines += [f"# {toml_text(name)}: {reason}" for name, reason in features.unusable.items()]
    return lines


def _guess(line: str, reasons: Iterable[str]) -> list[str]:
    """A line that is a guess, its reasons above it."""
    return [*(f"# {reason}" for reason in reasons), f"{line}  # CHECK"]
