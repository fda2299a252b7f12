"""The study file that policysim init writes, of the texts in study_text.toml: every guess has a comment, CHECK."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterable
from pathlib import Path
from string import Template

from policies.catalogue import WITHOUT_LEAD
from policies.levels import NO_VALUE, level_of
from policysim.files.csv_format import RECOGNISED, CsvFormat
from policysim.logs.column_summary import words
from policysim.logs.guess_roles import Candidate, Features, Roles
from policysim.logs.log_source import CHECK, JOINT
from policysim.logs.toml_text import toml_list, toml_number, toml_string, toml_text

CONTROLS = {"placebo", "control", "none", "untreated", "standard", "usual", "soc", "no", "observation", "obs"}
YES = ("1", "y", "yes")
YES_AND_NO = ({"0", "1"}, {"n", "y"}, {"no", "yes"})
TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def study_text(
    file: str, stem: str, study: str, roles: Roles, features: Features, *, stated: CsvFormat = RECOGNISED
) -> tuple[str, str]:
    """The text of a study, and what the screen says of it.

    Parameters
    ----------
    file : str
        The data, as the study names them.
    stem : str
        What they are called in the title.
    study : str
        The study's own path, for the command that comes next.
    stated : CsvFormat
        What the user has said of how the file is written.
    """
    treatment, joined, chosen = roles.treatment, [part.name for part in roles.joined], features.chosen
    gaps = [column for column in (treatment, roles.outcome, roles.time) if column and column.n_missing]
    without = JOINT.join(f"{toml_safe(toml_text(column.name))} ({column.n_missing:,})" for column in gaps)
    left_out = _lines(f"# {toml_text(name)}: {toml_safe(reason)}" for name, reason in features.left_out.items())
    names = treatment_names(roles)
    counts = dict(zip((str(level_of(value)) for value in treatment.values), treatment.counts, strict=True))
    better = f"{toml_text(roles.outcome.name)}, {'less' if roles.harmful else 'more'} is better"
    written = [f"\n{key} = {toml_string(value)}" for key, value in stated.keys.items()]
    slots = {
        "data": toml_safe(file),
        "rows": f"{treatment.n_rows:,}",
        "title": toml_string(f"What does choosing treatments privately cost the patients of {stem}?"),
        "file": toml_string(file) + ("" if stated.header else "\nheader = false") + "".join(written),
        "id": _filled("id", id=toml_string(roles.id)) if roles.id else "",
        "treatment": toml_list(joined) if joined else toml_string(treatment.name),
        "arms": JOINT.join(f"{toml_safe(name)} {counts[value]:,}" for value, name in names),
        "outcome": _outcome(roles),
        "better": f"free of {better.split(',', maxsplit=1)[0]} at {roles.horizon:g}" if roles.time else better,
        "missing": _filled("missing", columns=without) if gaps else "",
        "treatments": _lines(f"{toml_text(value)} = {toml_string(name)}" for value, name in names),
        "features": _lines(map(_declared, chosen)),
        "names": JOINT.join(toml_text(candidate.feature.name) for candidate in chosen),
        "n_features": str(len(chosen)),
        "records": f"{features.n_records:,}",
        "sizes": " × ".join(str(len(candidate.counts)) for candidate in chosen),
        "left_out": _filled("left_out", left_out=left_out) if left_out else "",
        "policies": toml_list(WITHOUT_LEAD),
        "by": toml_list([candidate.feature.name for candidate in chosen[:2]]),
        "study": toml_safe(shlex.quote(study)),
    }
    text = _filled("study", **slots)
    return text, _filled("screen", checks=str(text.count(CHECK)), **slots)


def toml_safe(text: str) -> str:
    """Text for a comment: what cannot be printed is escaped."""
    return text if text.isprintable() else toml_string(text)


def treatment_names(roles: Roles) -> list[tuple[str, str]]:
    """Value and name of each treatment, one that sounds like a control first; numbers get a word.

    Of columns of yes and no that make it together, the name is that of those with a yes.
    """
    pairs = []
    yes_and_no = all({str(level_of(value)).lower() for value in part.values} in YES_AND_NO for part in roles.joined)
    for value in map(str, map(level_of, roles.treatment.values)):
        name = f"arm {value}" if roles.treatment.is_numeric else value
        if roles.joined:
            parts = list(zip((part.name for part in roles.joined), value.split(JOINT), strict=False))
            given = [f"arm {name}" if name.isdecimal() else name for name, word in parts if word.lower() in YES]
            name = (" + ".join(given) or "none") if yes_and_no else JOINT.join(map(" ".join, parts))
        pairs.append((value, name))
    return sorted(pairs, key=lambda pair: CONTROLS.isdisjoint(words(pair[1])))


def _outcome(roles: Roles) -> str:
    outcome, name = roles.outcome, toml_string(roles.outcome.name)
    if roles.time:
        return _filled("followed", time=toml_string(roles.time.name), event=name, horizon=toml_number(roles.horizon))
    weight = "-1.0" if roles.harmful else "1.0"
    text = _filled("outcome", outcome=toml_text(outcome.name), weight=weight)
    text += _filled("checked", doubt=toml_safe(roles.doubt), outcome=name) if roles.doubt else ""
    if outcome.low >= 0 and outcome.high <= 1:
        return text
    return text + _filled("range", range=toml_list(sorted(float(weight) * end for end in (outcome.low, outcome.high))))


def _declared(candidate: Candidate) -> str:
    feature = candidate.feature
    bins = f"cuts = {toml_list(feature.cuts)}" if feature.cuts else f"levels = {toml_list(feature.levels)}"
    bins += ", missing = true" if feature.cuts and NO_VALUE in feature.levels else ""
    counts = JOINT.join(f"{count:,}" for count in candidate.counts)
    few = f"; {toml_safe(candidate.few)}" if candidate.few else ""
    return f"{toml_text(feature.name)} = {{ {bins} }}  # CHECK patients: {counts}{few}"


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _filled(text: str, **slots: str) -> str:
    return Template(TEXTS[text]).substitute(slots)
