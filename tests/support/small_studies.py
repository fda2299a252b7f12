"""A small scenario and study for tests of files and commands."""

from pathlib import Path

SCENARIO = """\
title = "Two symptoms"
source = "illustrative"

[features]
infected = {}
fever = {}
cough = {}
smoker = {}
age = { levels = ["young", "old"], shares = [0.7, 0.3] }

[[rules]]
source = "illustrative"
set = { infected = 0.3, smoker = 0.2, fever = 0.05, cough = 0.1, death = 0.001 }

[[rules]]
source = "illustrative"
when = { infected = 1 }
set = { fever = 0.6, cough = 0.5, death = 0.05 }

[natural_clearing]
infected = 0.1
fever = 0.2
cough = 0.1

[treatments.none]
title = "nothing"

[treatments.syrup]
title = "syrup"
cost = 0.02
clears = { cough = 0.6 }

[treatments.pill]
title = "pill"
cost = 0.05
clears = { infected = 0.5, fever = 0.5 }
side_effects = { cough = 0.1 }

[death]
acute = { infected = 1 }
baseline = 0.2
hazard = { fever = 0.8, cough = 0.4 }

[death.relative_risk]
age = [1, 4]
smoker = [1, 1.5]

[weights]
infected = 0.1
fever = 0.2
cough = 0.3
death = 10
"""

# The same where symptoms begin on later days, too.
WITH_ONSET = SCENARIO.replace("[treatments.none]", "[onset]\nfever = 0.5\ncough = 0.3\n\n[treatments.none]")

# The first where the pill depends on the patient, and there is an event.
DEPENDENT = (
    SCENARIO
    + """\
stroke = 4

[[treatments.pill.rules]]
when = { fever = 1, age = "old" }
multiply = { clears.infected = 0.5 }
add = { cost = 0.75, hazard_ratio.stroke = 1.5 }

[events.stroke]
baseline = 0.01
hazard = { fever = 0.25 }
"""
)

STUDY = """\
title = "A small study"
scenario = "scenario.toml"
seed = 3

[privacy]
adjacency = "any-record"
epsilon = 1.0
epsilons = [0.5, 1.0, 4.0]

[compare]
policies = ["greedy", "best-fixed", "uniform", "exponential", "randomized-response"]
by = ["age", "infected"]
"""


def write_small_study(folder: Path, study: str = STUDY, scenario: str = SCENARIO) -> Path:
    """Write both files and return the study's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scenario.toml").write_text(scenario, encoding="utf-8")
    path = folder / "small.toml"
    path.write_text(study, encoding="utf-8")
    return path
