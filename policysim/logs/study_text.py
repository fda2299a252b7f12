"""The study file that policysim init writes: every guess has a comment that says CHECK, and why."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

import numpy as np

from policies.catalogue import WITHOUT_DEATHS
from policysim.files.bad_rows import level_of
from policysim.files.whole_folders import toml_list, toml_number, toml_string, toml_text
from policysim.logs.column_names import words
from policysim.logs.guess_features import Candidate, Features, round_range
from policysim.logs.guess_roles import Roles
from policysim.logs.log_source import ESTIMATE, EXCLUDE, JOINT, THREE_TABLES

CONTROLS = {"placebo", "control", "none", "untreated", "standard", "usual", "soc", "no", "observation", "obs"}
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
    names = [candidate.binning.name for candidate in features.chosen[:2]]
    sections = [
        [
            f"# A study of {toml_safe(JOINT.join(files))} ({roles.treatment.n_rows:,} rows), written by policysim init.",
            "# Lines with CHECK are guesses from names and values: read each one before you believe a result.",
            f"title = {toml_string(f'What does choosing treatments privately cost the patients of {stem}?')}",
        ],
        _data(files, roles, header=header),
        [
            "[data.treatments]",
            "# CHECK names as the report shall show them; the first is the reference.",
            *(f"{toml_text(value)} = {toml_string(name)}" for value, name in treatment_names(roles)),
        ],
        _features(features),
        PRIVACY,
        [
            "[compare]",
            f"policies = {toml_list(WITHOUT_DEATHS)}",
            f"# by = {toml_list(names)}  # report each level of these features",
        ],
        [f"# Type next: policysim compare {toml_safe(shlex.quote(study))}"],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


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
    return sorted(zip(values, names, strict=True), key=lambda pair: CONTROLS.isdisjoint(words(pair[1])))


def arms(roles: Roles) -> str:
    """How many patients have each treatment."""
    counts = dict(zip((str(level_of(value)) for value in roles.treatment.values), roles.treatment.counts, strict=True))
    return JOINT.join(f"{toml_safe(name)} {counts[value]:,}" for value, name in treatment_names(roles))


def _data(files: Sequence[str], roles: Roles, *, header: bool) -> list[str]:
    named = JOINT.join(f"{role} = {toml_string(file)}" for role, file in zip(THREE_TABLES, files, strict=False))
    lines = ["[data]", f"file = {toml_string(files[0])}" if len(files) == 1 else f"file = {{ {named} }}"]
    lines += [] if header else ["header = false"]
    if roles.id:
        lines += _guess(
            f"id = {toml_string(roles.id.name)}", ["one row is one patient: compare refuses an id that repeats"]
        )
    treatment = toml_list([part.name for part in roles.joined]) if roles.joined else toml_string(roles.treatment.name)
    lines += _guess(f"treatment = {treatment}", [f"patients: {arms(roles)}"])
    why = ["this column must hold the probability with which the patient got the treatment that is logged"]
    if not roles.propensity:
        why = [
            '"equal" if patients were randomised equally, or a column with the probability of the treatment they got;',
            '"estimate" predicts the treatment from the features: whatever else decided it may confound every result',
        ]
    lines += _guess(f"propensity = {toml_string(roles.propensity or ESTIMATE)}", why)
    lines += _followed(roles) if roles.time else _outcome(roles)
    reasons = [
        f"{column.n_missing:,} of {column.n_rows:,} rows have no {toml_safe(toml_text(column.name))}"
        for column in (roles.treatment, roles.outcome, roles.time)
        if column is not None and column.n_missing
    ]
    if roles.outcome.n_missing and not roles.time:
        reasons.append('"worst" gives rows without an outcome the lowest reward')
    return [*lines, *(_guess(f"missing = {toml_string(EXCLUDE)}", reasons) if reasons else [])]


def _followed(roles: Roles) -> list[str]:
    """The outcome "free of the event at the horizon"."""
    values = [str(level_of(value)) for value in roles.treatment.values]
    counts = dict(zip(values, roles.followed, strict=True))
    at_risk = JOINT.join(f"{toml_safe(name)} {counts[value]:,}" for value, name in treatment_names(roles))
    time = roles.time.name if roles.time else ""
    return [
        "# the outcome is to be free of the event at the horizon; 1 is the event, 0 that follow-up ended before",
        f"time = {toml_string(time)}  # CHECK",
        f"event = {toml_string(roles.outcome.name)}  # CHECK",
        *_guess(
            f"horizon = {toml_number(roles.horizon)}",
            [
                f"patients who are followed so long: {at_risk}",
                "an earlier one that means something, such as a year, may be better; choose it before you see results",
            ],
        ),
    ]


def _outcome(roles: Roles) -> list[str]:
    outcome, weight = roles.outcome, -1.0 if roles.harmful else 1.0
    says = "1 sounds harmful: the weight is -1" if roles.harmful else "more is taken to be better"
    facts = [says, "several outcomes are weighted, such as { success = 1.0, death = -5.0 }; the reward is the sum"]
    lines = _guess(f"outcome = {{ {toml_text(outcome.name)} = {toml_number(weight)}.0 }}", facts)
    if roles.doubt:
        lines += _guess(f"outcome_checked = {toml_list([outcome.name])}", [toml_safe(roles.doubt)])
    low_high = round_range(outcome)
    if low_high != (0.0, 1.0):
        why = [f"what the reward can be, from knowledge; the values are {outcome.low:g} to {outcome.high:g}"]
        lines += _guess(f"range = {toml_list(sorted(weight * end for end in low_high))}", why)
    return lines


def _features(features: Features) -> list[str]:
    lines = [
        "[data.features]",
        "# CHECK that each was known before treatment. All levels and cuts are public: for a real release they must",
        "# come from knowledge and not be read off the data, as these were (cuts at about quartiles).",
        *(_declared(candidate) for candidate in features.chosen),
        f"# These make {features.n_records:,} records: {' × '.join(str(one.size) for one in features.chosen)}.",
    ]
    if features.further:
        lines += ["# CHECK Left out to keep that small:", *(f"# {_declared(one)}" for one in features.further)]
    if features.left_out:
        lines.append("# Left out, as no features, or known only after treatment, or telling it; CHECK each:")
        lines += [f"# {toml_text(name)}: {toml_safe(reason)}" for name, reason in features.left_out.items()]
    return lines


def _declared(candidate: Candidate) -> str:
    binning = candidate.binning
    bins = f"levels = {toml_list(binning.feature.levels)}" if binning.levels else f"cuts = {toml_list(binning.cuts)}"
    bins += ", missing = true" if binning.missing else ""
    few = f"; {toml_safe(candidate.few)}" if candidate.few else ""
    counts = JOINT.join(f"{count:,}" for count in candidate.counts)
    return f"{toml_text(binning.name)} = {{ {bins} }}  # CHECK patients: {counts}{few}"


def _guess(line: str, reasons: Iterable[str]) -> list[str]:
    """A line that is a guess, its reasons above it."""
    return [*(f"# {reason}" for reason in reasons), f"{line}  # CHECK"]
