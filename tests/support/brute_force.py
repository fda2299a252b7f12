"""A day and a night of treatment by the definitions alone, record by record, and small scenarios to try them on.

Nothing of the project computes here but the severity (the solved multiplier of the hazard), which has tests of its own.
"""

import itertools
from pathlib import Path

import numpy as np

import envs

# The hazard reads a transient flag. The onset of cough reads fever and that of fever reads infected, and in the record
# they stand the other way round.
CHAIN = """\
title = "A chain of onsets"
[features]
cough = {}
old = { levels = ["no", "yes"], shares = [0.6, 0.4] }
fever = {}
infected = {}

[[rules]]
set = { infected = 0.3, fever = 0.1, cough = 0.2, death = 0.05 }
[[rules]]
when = { infected = 1 }
set = { fever = 0.7, death = 0.3 }
[[rules]]
when = { fever = 1 }
set = { cough = 0.9 }
[[rules]]
when = { fever = 1, old = "yes" }
multiply = { cough = 0.5 }

[natural_clearing]
infected = 0.2
fever = 0.4
cough = 0.1
[onset]
infected = 0.5
fever = 0.5
cough = 0.75
[treatments.none]
[treatments.syrup]
cost = 0.3
clears = { cough = 0.6 }
side_effects = { fever = 0.2 }
[treatments.pill]
cost = 0.1
clears = { infected = 0.5, fever = 0.3 }
[death]
acute = { infected = 1 }
baseline = 0.3
hazard = { fever = 1.5, cough = 0.7 }
[death.relative_risk]
old = [1, 3]
[weights]
infected = 0.25
fever = 0.5
cough = 0.125
death = 10
"""
# The hazard depends on the fixed part and on what is left in the evening; nobody is infected anew.
FIXED_HAZARD = """\
title = "A hazard that reads no transient flag"
[features]
infected = {}
fever = {}
old = { levels = ["no", "yes"], shares = [0.6, 0.4] }

[[rules]]
set = { infected = 0.3, fever = 0.1, death = 0.1 }
[[rules]]
when = { infected = 1 }
set = { fever = 0.7 }

[natural_clearing]
infected = 0.2
fever = 0.4
[onset]
fever = 0.5
[treatments.none]
[treatments.pill]
cost = 0.1
clears = { infected = 0.5, fever = 0.3 }
side_effects = { fever = 0.1 }
[death]
acute = { old = "yes" }
baseline = 0.3
hazard = { infected = 2, fever = 1.5 }
[death.relative_risk]
old = [1, 3]
[weights]
infected = 0.25
death = 10
"""
# More transient flags than are multiplied out at once.
NINE = """\
title = "Nine transient flags"
[features]
f1 = {}
f2 = {}
f3 = {}
f4 = {}
old = { levels = ["no", "yes"], shares = [0.6, 0.4] }
f5 = {}
f6 = {}
f7 = {}
f8 = {}
f9 = {}

[[rules]]
set = { f1 = 0.3, f2 = 0.1, f3 = 0.2, f4 = 0.1, f5 = 0.3, f6 = 0.2, f7 = 0.1, f8 = 0.1, f9 = 0.1, death = 0.05 }
[[rules]]
when = { f9 = 1 }
set = { f1 = 0.7, death = 0.3 }
[[rules]]
when = { f1 = 1, f8 = 0 }
set = { f5 = 0.9 }

[natural_clearing]
f1 = 0.1
f2 = 0.2
f3 = 0.3
f4 = 0.4
f5 = 0.5
f6 = 0.6
f7 = 0.7
f8 = 0.8
f9 = 0.9
[onset]
f1 = 0.5
f3 = 0.25
f5 = 0.75
f9 = 0.125
[treatments.none]
[treatments.all]
cost = 0.1
clears = { f1 = 0.2, f2 = 0.4, f5 = 0.6, f8 = 0.1, f9 = 0.3 }
side_effects = { f3 = 0.3, f7 = 0.1 }
[death]
acute = { f9 = 1 }
baseline = 0.3
hazard = { f2 = 1.5, f6 = 0.7, f9 = 0.4 }
relative_risk = { old = [1, 3] }
[weights]
f1 = 0.5
death = 10
"""
# An event beside death; what the pill does depends on age and on the other flag.
EVENTS = """\
title = "A stroke"
[features]
fever = {}
old = { levels = ["no", "yes"], shares = [0.6, 0.4] }
clots = {}

[[rules]]
set = { fever = 0.3, clots = 0.2, death = 0.1 }

[natural_clearing]
fever = 0.4
clots = 0.1
[onset]
fever = 0.5
clots = 0.25
[treatments.none]
[treatments.pill]
clears = { fever = 0.5 }
side_effects = { clots = 0.1 }
hazard_ratio = { death = 0.5, stroke = 2 }
contraindicated = [{ clots = 1, old = "yes" }]
[[treatments.pill.rules]]
when = { clots = 1 }
multiply = { clears.fever = 0.25, cost = 0 }
[[treatments.pill.rules]]
when = { old = "yes", fever = 0 }
add = { side_effects.clots = 0.25, hazard_ratio.stroke = 1.5 }
[events.stroke]
baseline = 0.125
hazard = { clots = 2 }
relative_risk = { fever = [1, 1.5] }
[death]
baseline = 0.5
hazard = { fever = 1.5 }
[weights]
fever = 0.5
stroke = 3
death = 10
"""
# What treatments do depends on the fixed part and on transient flags, and there are events.
LANGUAGE = (Path(__file__).parents[1] / "envs" / "data" / "language.toml").read_text(encoding="utf-8")
SCENARIOS = {"chain": CHAIN, "fixed-hazard": FIXED_HAZARD, "nine": NINE, "events": EVENTS, "language": LANGUAGE}


def scenario(name: str, folder: Path) -> envs.Scenario:
    """One of the scenarios above, through a file."""
    path = folder / f"{name}.toml"
    path.write_text(SCENARIOS[name], encoding="utf-8")
    return envs.load_scenario(path)


class ByHand:
    """A day and a night of a scenario over some days, from the definitions."""

    def __init__(self, scenario, days):
        self.scenario, self.days, self.flags = scenario, days, scenario.transient
        # Every evening: (2^n, n) of 0 and 1; the first is that of full recovery.
        self.evenings = np.array(list(itertools.product((0, 1), repeat=len(self.flags))))
        self.severity = np.broadcast_to(envs.ResponseModel(scenario).severity, scenario.space.shape).ravel()

    def records(self):
        """Every record as a dict, in the order of its index."""
        features = self.scenario.space.features
        for levels in itertools.product(*(feature.levels for feature in features)):
            yield dict(zip((feature.name for feature in features), levels, strict=True))

    def among(self, values):
        """The records that share the fixed part of a record, (2^n,), one for each state of the flags."""
        shape, axes = self.scenario.space.shape, [self.scenario.space.axis(flag) for flag in self.flags]
        strides = [int(np.prod(shape[axis + 1 :])) for axis in axes]
        return self.scenario.space.record({**values, **dict.fromkeys(self.flags, 0)}) + self.evenings @ np.array(
            strides
        )

    def at_admission(self, values, target):
        """P(target) by the rules, in their order, for one record."""
        chance = 0.0
        for rule in self.scenario.rules:
            if all(values[name] in levels for name, levels in rule.when.items()) and target in rule.changes:
                operation, number = rule.changes[target]
                chance = {"set": number, "add": chance + number, "multiply": chance * number}[operation]
        return chance

    def own(self, values, action, target):
        """A number of a treatment under its own rules, for one record."""
        treatment, (part, _, name) = self.scenario.treatments[action], target.partition(".")
        stated = {"clears": treatment.clears, "side_effects": treatment.side_effects}
        if part == "cost":
            number = treatment.cost
        elif part == "hazard_ratio":
            number = treatment.hazard_ratio.get(name, 1.0)
        else:
            number = stated[part].get(name, 0.0)
        for rule in treatment.rules:
            if target in rule.changes and all(values[feature] in levels for feature, levels in rule.when.items()):
                operation, step = rule.changes[target]
                number = {"set": step, "add": number + step, "multiply": number * step}[operation]
        return number

    def parts(self, action):
        """A treatment and all that it consists of, over and over."""
        return [action, *(each for part in self.scenario.treatments[action].combines for each in self.parts(part))]

    def effect(self, values, action, target):
        """A probability of a treatment together with its parts."""
        return 1 - np.prod([1 - self.own(values, part, target) for part in self.parts(action)])

    def ratio(self, values, action, event):
        """A hazard ratio of a treatment together with its parts."""
        return np.prod([self.own(values, part, f"hazard_ratio.{event}") for part in self.parts(action)])

    def allowed(self, values, action):
        """Whether no contraindication of a treatment or of a part is met."""
        conditions = [each for part in self.parts(action) for each in self.scenario.treatments[part].contraindicated]
        return not any(all(values[name] in levels for name, levels in each.items()) for each in conditions)

    def present(self, values, action, flag):
        """P(flag present in the evening)."""
        if values[flag]:
            return (1 - self.scenario.natural_clearing[flag]) * (1 - self.effect(values, action, f"clears.{flag}"))
        return self.effect(values, action, f"side_effects.{flag}")

    def day(self, values, action):
        """P(evening) and P(death | evening), (2^n,) each."""
        death = self.scenario.death
        hazard = np.ones(len(self.evenings))
        if all(values[name] in levels for name, levels in death.acute.items()):
            hazard = death.baseline + self.evenings @ np.array([death.hazard.get(flag, 0) for flag in self.flags])
        hazard = hazard * self.severity[self.scenario.space.record(values)] / self.days
        hazard = hazard * self.ratio(values, action, "death")
        chances = [self.present(values, action, flag) for flag in self.flags]
        return together(chances, self.evenings), 1 - np.exp(-hazard)

    def event(self, values, action, name):
        """P(event | evening), (2^n,)."""
        event = self.scenario.events[name]
        hazard = np.full(len(self.evenings), event.baseline)
        if all(values[feature] in levels for feature, levels in event.acute.items()):
            hazard = hazard + self.evenings @ np.array([event.hazard.get(flag, 0) for flag in self.flags])
        for feature, factors in event.relative_risk.items():
            hazard = hazard * factors[self.scenario.space.feature(feature).levels.index(values[feature])]
        return 1 - np.exp(-hazard * self.ratio(values, action, name) / self.days)

    def appears(self, values, flag):
        """P(flag present next morning), for the evening's record."""
        return 1 if values[flag] else self.scenario.onset.get(flag, 0) * self.at_admission(values, flag)

    def night(self, values):
        """P(next morning | evening), (2^n, 2^n), for the fixed part of a record."""
        rows = []
        for evening in self.evenings.tolist():
            record = {**values, **dict(zip(self.flags, evening, strict=True))}
            rows.append(together([self.appears(record, flag) for flag in self.flags], self.evenings))
        return np.array(rows)

    def matrices(self):
        """P(next morning's record where the stay goes on | record, action), (n_actions, n_records, n_records)."""
        size = self.scenario.space.size
        result, nights = np.zeros((len(self.scenario.actions), size, size)), {}
        for record, values in enumerate(self.records()):
            onward = self.among(values)
            if onward[0] not in nights:
                nights[onward[0]] = self.night(values)
            for action, name in enumerate(self.scenario.actions):
                likely, dies = self.day(values, name)
                goes_on = likely * (1 - dies)
                goes_on[0] = 0.0
                result[action, record, onward] = goes_on @ nights[onward[0]]
        return result

    def rewards(self):
        """The expected utility of one day, (n_records, n_actions)."""
        weights = self.scenario.weights
        harm = self.evenings @ np.array([weights.get(flag, 0.0) for flag in self.flags])
        table = np.zeros((self.scenario.space.size, len(self.scenario.actions)))
        for record, values in enumerate(self.records()):
            for action, name in enumerate(self.scenario.actions):
                likely, dies = self.day(values, name)
                came = sum(weights.get(event, 0.0) * self.event(values, name, event) for event in self.scenario.events)
                lost = likely @ (harm + weights["death"] * dies + came)
                table[record, action] = -lost - self.own(values, name, "cost")
        return table


def together(chances, happened):
    """P(exactly these of independent events happen), for rows of 0 and 1."""
    return np.prod(np.where(happened == 1, chances, 1 - np.array(chances)), axis=1)
