"""The study file that policysim init writes: every guess has a comment that says CHECK, and why."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from policies.catalogue import WITHOUT_DEATHS
from policysim.files.bad_rows import level_of
from policysim.files.output import toml_list, toml_number, toml_string, toml_text
from policysim.logs.guess_columns import ColumnSummary
from policysim.logs.guess_features import Candidate, Features, as_feature, round_range
from policysim.logs.guess_roles import Roles, reference_first
from policysim.logs.log_source import EQUAL, ESTIMATE, EXCLUDE

EPSILONS = (0.1, 0.2, 0.5, 1, 2, 5, 10)


def study_text(file: str, stem: str, study: str, roles: Roles, features: Features) -> str:
    """The text of a study.

    Parameters
    ----------
    file : str
        The data, as the study names them.
    stem : str
        What they are called in the title.
    study : str
        The study's own path, for the command that comes next.
    """
    sections = [
        _head(file, stem, roles),
        _data(file, roles),
        _treatments(roles),
        _features(features),
        _left_out(roles, features),
        _privacy(),
        _compare(features),
        [f"# Type next: policysim compare {toml_safe(shlex.quote(study))}"],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def toml_safe(text: str) -> str:
    """Text for a comment: what cannot be printed is escaped."""
    return text if text.isprintable() else toml_string(text)


def treatment_names(treatment: ColumnSummary) -> list[tuple[str, str]]:
    """Value and name of each treatment; numbers get a word."""
    values = [str(level_of(treatment.values[place])) for place in reference_first(treatment)]
    return [(value, f"arm {value}" if treatment.is_numeric else value) for value in values]


def _head(file: str, stem: str, roles: Roles) -> list[str]:
    return [
        f"# A study of {toml_safe(file)} ({roles.treatment.n_rows:,} rows), written by policysim init.",
        "# Lines with CHECK are guesses from names and values: read each one before you believe a result.",
        f"title = {toml_string(f'What does choosing treatments privately cost the patients of {stem}?')}",
    ]


def _data(file: str, roles: Roles) -> list[str]:
    lines = ["[data]", f"file = {toml_string(file)}"]
    if roles.id:
        lines += _guess(f"id = {toml_string(roles.id.name)}", ["all values are distinct, as patients' ids must be"])
    also = [f"or is it {', '.join(map(toml_text, roles.also_treatment))}?"] if roles.also_treatment else []
    lines += _guess(f"treatment = {toml_string(roles.treatment.name)}", also)
    lines += _guess(f"propensity = {toml_string(roles.propensity)}", _why_propensity(roles))
    return lines + _outcome(roles)


def _why_propensity(roles: Roles) -> list[str]:
    arms = roles.treatment
    counts = ", ".join(f"{toml_safe(str(level_of(v)))}: {n:,}" for v, n in zip(arms.values, arms.counts, strict=True))
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


def _outcome(roles: Roles) -> list[str]:
    if roles.outcome is None:
        return _guess("outcome = {}", _to_fill(roles))
    outcome, low_high = roles.outcome, round_range(roles.outcome)
    weight = -1.0 if roles.harmful else 1.0
    says = "1 sounds harmful: the weight is -1" if roles.harmful else "more is taken to be better"
    if "cens" in outcome.name.lower():
        says += "; in some files 1 means censored, that is no event: then the weight is 1"
    facts = [says, "several outcomes are weighted, such as { success = 1.0, death = -5.0 }; the reward is the sum"]
    lines = _guess(f"outcome = {{ {toml_text(outcome.name)} = {toml_number(weight)}.0 }}", facts)
    if low_high != (0.0, 1.0):
        low, high = sorted(weight * end for end in low_high)
        why = [f"what the reward can be, from knowledge; the values are {outcome.low:g} to {outcome.high:g}"]
        lines += _guess(f"range = {toml_list([low, high])}", why)
    if outcome.n_missing:
        count = f"{outcome.n_missing:,} of {outcome.n_rows:,}"
        why = [f'{count} rows have no outcome; "worst" gives them the lowest reward']
        lines += _guess(f"missing = {toml_string(EXCLUDE)}", why)
    return lines


def _to_fill(roles: Roles) -> list[str]:
    """What to write where no name says which column is the outcome."""
    return [
        "FILL IN the outcome: no column is named like one, and policysim compare refuses to guess.",
        f"it could be {', '.join(toml_text(column.name) for column in roles.candidates)}",
        "write such as { success = 1.0 }, or { death = -1.0 } where 1 is harm, and leave it out of the features;",
        "where its values are not within [0, 1], add range = [lowest, highest] of value times weight",
        "a time that ends early for some patients (censoring) is none: use 0 and 1 at a fixed time",
    ]


def _treatments(roles: Roles) -> list[str]:
    names = treatment_names(roles.treatment)
    pairs = [f"{toml_text(value)} = {toml_string(name)}" for value, name in names]
    return ["[data.treatments]", "# CHECK names as the report shall show them; the first is the reference.", *pairs]


def _features(features: Features) -> list[str]:
    lines = [
        "[data.features]",
        "# CHECK that each was known before treatment. All levels and cuts are public: for a real release they must",
        "# come from knowledge and not be read off the data, as these were (cuts at about quartiles).",
        *(_declared(candidate) for candidate in features.chosen),
        f"# These make {features.n_records:,} records: {_product(features.chosen)}.",
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
    counts = ", ".join(f"{count:,}" for count in candidate.counts)
    gaps = '; "NA" stands for missing values' if candidate.missing_level else ""
    return f"{toml_text(binning.name)} = {{ {bins} }}  # CHECK patients: {counts}{gaps}"


def _later(column: ColumnSummary) -> str:
    """The declaration of a column that should be no feature, if it can be one."""
    candidate = as_feature(column)
    return _declared(candidate).partition("  # CHECK")[0] if candidate else toml_text(column.name)


def _product(candidates: Iterable[Candidate]) -> str:
    return " × ".join(str(candidate.size) for candidate in candidates)


def _left_out(roles: Roles, features: Features) -> list[str]:
    lines = []
    if roles.later:
        lines.append(
            "# Left out: probably known only after treatment, or they tell it. No treatment may depend on these."
        )
        lines += [f"# {_later(column)}  # CHECK {reason}" for column, reason in roles.later]
    if features.unusable:
        lines.append("# Left out: of no use as features.")
        lines += [f"# {toml_text(name)}: {reason}" for name, reason in features.unusable.items()]
    return lines


def _privacy() -> list[str]:
    return [
        "[privacy]",
        'hidden_from = "anyone who sees the published treatment"  # CHECK',
        'adjacency = "any-record"   # or "one-feature", or "sensitive" with sensitive = [features that must be hidden]',
        "epsilon = 1.0              # the printed table",
        f"epsilons = {toml_list(EPSILONS)}  # the curve",
    ]


def _compare(features: Features) -> list[str]:
    names = [candidate.binning.name for candidate in features.chosen[:2]]
    return [
        "[compare]",
        f"policies = {toml_list(WITHOUT_DEATHS)}",
        f"# by = {toml_list(names)}  # report each level of these features",
    ]


def _guess(line: str, reasons: Iterable[str]) -> list[str]:
    """A line that is a guess, its reasons above it."""
    return [*(f"# {reason}" for reason in reasons), f"{line}  # CHECK"]
