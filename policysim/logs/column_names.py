"""What the names of columns say: who a patient is, when something was measured, what came after treatment."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Words of names, by what they name: a patient or anything's id, treatments, what is known only after one, and so on.
_WORDS = {
    "patient": "pid pidnum mrn patient subject subj participant person seqn",
    "time": "time days weeks months years survival tte futime fu os pfs dfs rfs efs followup",
    "status": "status event cens censor censored death died dead fustat failure relapse recur",
    "propensity": "propensity pscore",
    "treatment": "treatment action arm arms treat trt rx tx treated therapy intervention allocation group",
    "after": """
        reward outcome success response responder cured cure recovered recovery remission improved alive survived
        utility benefit result mortality adverse toxicity complication readmitted readmission hospitalised hospitalized
        loss cost progression days weeks months survival los followup follow fu post after end endpoint discharge off
        ae sae dropout withdrawal withdrawn compliance adherence censoring propensity pscore qaly qalys
        actual received rescue switch switched crossover change chg pchg aval aeser aesev aeout aeterm dthfl
    """,
    "period": "time hour hours day days week weeks wk month months mo year years yr",
}
WORDS = {kind: frozenset(text.split()) for kind, text in _WORDS.items()}
WORDS["id"] = WORDS["patient"] | {"id", "identifier"}


def words_of(name: str) -> set[str]:
    """The words of a name in lower case: of days_toEvent and "Days to event" days, to, event."""
    return set(re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))


def says(name: str, kind: str) -> bool:
    """Whether one of a name's words is of this kind.

    Examples
    --------
    >>> [name for name in ("patientId", "site_id", "covid", "PID") if says(name, "id")]
    ['patientId', 'site_id', 'PID']
    """
    return not WORDS[kind].isdisjoint(words_of(name))


def is_follow_up(name: str) -> bool:
    """Whether a name is that of a time to an event, or of follow-up, and of nothing else.

    Examples
    --------
    >>> [name for name in ("time", "Days to event", "survival_months", "time_in_range") if is_follow_up(name)]
    ['time', 'Days to event', 'survival_months']
    """
    others = {"to", "until", "follow", "up", "free", "overall"}
    return says(name, "time") and words_of(name) <= WORDS["time"] | WORDS["status"] | others


def is_id(name: str) -> bool:
    """Whether one of a name's words is that of an id: of a patient, or of anything else."""
    return says(name, "id")


DIGITS, MOST_DIGITS = "0123456789", 9
# "stroke_14d", "sbp_d28", "crp_v3" (of visits the first is often that before treatment), and CDISC's "TRT01A".
_UNITS = "d|days?|w|wks?|weeks?|m|mo|months?|y|yrs?|years?"
_LATER_BY = re.compile(
    rf"(?:^|[^a-z0-9])0*[1-9][0-9]* ?(?:{_UNITS})$"
    rf"|[^a-z0-9](?:{_UNITS})0*[1-9][0-9]*$"
    r"|[^a-z0-9]v0*(?:[2-9]|[1-9][0-9]+)$"
    r"|^trt[0-9]+[ap]$"
)
# How REDCap names the boxes of one question: "race___1", "race___2".
_BOXES = "___"


def sounding_later(names: Sequence[str]) -> list[str]:
    """Those of all names of a table that sound like a treatment, or like what came after one.

    Examples
    --------
    >>> sounding_later(["age", "cd40", "cd420", "arm", "death28", "pain_week4", "stroke_14d", "x1", "x2"])
    ['cd420', 'arm', 'death28', 'pain_week4', 'stroke_14d']
    >>> sounding_later(["sbp_d0", "sbp_d28", "AVAL_W4", "TRT01A", "dose_actual", "race___1", "race___2"])
    ['sbp_d28', 'AVAL_W4', 'TRT01A', 'dose_actual']
    """
    stems = [name.rstrip(DIGITS) for name in names]
    numbers = [int(name[len(stem) :][:MOST_DIGITS] or 0) for name, stem in zip(names, stems, strict=True)]
    first: dict[str, int] = {}  # the smallest number behind each stem
    for name, stem, number in zip(names, stems, numbers, strict=True):
        if stem != name:
            first[stem] = min(number, first.get(stem, number))
    later = []
    for name, stem, number in zip(names, stems, numbers, strict=True):
        words = words_of(name)
        again = len("".join(words)) > 1 and not stem.endswith(_BOXES) and 0 < first.get(stem, number) < number
        counted = number > 0 and says(name, "period")
        after = says(name, "after") or says(name, "status") or is_follow_up(name)
        treatment = bool(words) and words <= WORDS["treatment"]
        if after or treatment or counted or again or _LATER_BY.search(name.lower()):
            later.append(name)
    return later
