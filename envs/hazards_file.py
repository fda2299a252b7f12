"""Reading what makes the hazards of death and of other events in a scenario file."""

from __future__ import annotations

from collections.abc import Sequence

from envs.features_file import UNREAD, read_condition
from envs.records import Feature
from envs.scenario import DEATH, DEATHS, SYMPTOMS, DeathModel, EventModel
from envs.toml_reader import Intervals, Table, is_number, number_wanted, unknown

# Relative hazards beyond these are mistakes, and would overflow.
LEAST, MOST = 1e-6, 1e6
# Says that most of the untreated have an event, or die, and that this is no slip.
CONFIRMED = "more_than_half"


def read_death(table: Table, features: Sequence[Feature], flags: list[str], intervals: Intervals) -> DeathModel:
    """The section about death; everything in it may be left out."""
    acute = read_condition(table.table("acute"), features)
    baseline = table.number("baseline", 1.0, low=LEAST, high=MOST, intervals=intervals)
    hazard = table.numbers("hazard", flags, "outcome", low=0, high=MOST, intervals=intervals)
    relative_risk = _read_risks(table.table("relative_risk"), features, intervals)
    source = table.text("source", "")
    table.flag(CONFIRMED, default=False)
    table.close()
    return DeathModel(acute, baseline, hazard, relative_risk, source)


def read_events(
    table: Table, features: Sequence[Feature], flags: list[str], intervals: Intervals
) -> dict[str, EventModel]:
    """The events by name, in the order of the file."""
    events: dict[str, EventModel] = {}
    for name, entry in table.subtables():
        if name == DEATH:
            table.fail("death has a section of its own: [death]", name)
        elif name in (DEATHS, SYMPTOMS):
            table.fail(f"{name} is what all of them are counted as: an event needs another name", name)
        elif name in [feature.name for feature in features]:
            table.fail(f"{name} is a feature: an event needs another name", name)
        noted = len(entry.mistakes.found)
        event = EventModel(
            title=entry.text("title", name.replace("_", " ")),
            baseline=entry.number("baseline", 0.0, low=0, high=MOST, intervals=intervals),
            hazard=entry.numbers("hazard", flags, "flag", low=0, high=MOST, intervals=intervals),
            relative_risk=_read_risks(entry.table("relative_risk"), features, intervals),
            acute=read_condition(entry.table("acute"), features),
            source=entry.text("source", ""),
        )
        entry.flag(CONFIRMED, default=False)
        entry.close()
        if (
            isinstance(table.values[name], dict)
            and len(entry.mistakes.found) == noted
            and not (event.baseline or any(event.hazard.values()))
        ):
            table.fail("never happens: it needs a baseline or a hazard > 0", name)
        events[name] = event
    return events


def _read_risks(table: Table, features: Sequence[Feature], intervals: Intervals) -> dict[str, tuple[float, ...]]:
    by_name = {feature.name: feature for feature in features}
    relative_risk: dict[str, tuple[float, ...]] = {}
    for name in table.values:
        if name not in by_name:
            table.fail(unknown("feature", name, list(by_name)), name)
            continue
        noted = len(table.mistakes.found)
        entries = table.list_of(
            name, lambda v: isinstance(v, dict) or is_number(v, LEAST, MOST), number_wanted(LEAST, MOST)
        )
        if len(table.mistakes.found) > noted or by_name[name].levels == UNREAD:
            continue
        if len(entries) != len(by_name[name].levels):
            table.fail(f"must be one factor per level ({len(by_name[name].levels)}), got {len(entries)}", name)
            continue
        relative_risk[name] = tuple(
            Table(entry, (*table.key, name, position), table.mistakes).estimate(intervals, low=LEAST, high=MOST)
            if isinstance(entry, dict)
            else float(entry)
            for position, entry in enumerate(entries)
        )
    return relative_risk
