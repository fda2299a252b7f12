"""A study, a trial and a folder of reports with everything that could break a page: markup, scripts, long words."""

import csv
from pathlib import Path

import numpy as np

MARKUP = '<script>document.title="ran"</script><img src=x onerror="document.title=\'ran\'"> & "b" ${x} {{ y }}'
LONG = "a" * 60
CHINESE = "对病人私下选择的治疗方案究竟要付出多少代价"
ARABIC = "علاج يختار سرا لكل مريض"
TITLE = f"{MARKUP} {LONG} {CHINESE} {ARABIC}"
NAMES = (MARKUP, LONG, CHINESE, ARABIC)
N_TREATMENTS, N_LEVELS = 12, 40

# One epsilon only.
PRIVACY = """\
[privacy]
hidden_from = {title}
adjacency = "any-record"
epsilon = 1.0
epsilons = [1.0]

[compare]
policies = [{policies}]
by = ["district"]
"""


def quoted(text):
    """A string of TOML, whatever signs are in it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def scenario():
    """Twelve treatments, forty districts, nobody can die; one treatment is good for nobody."""
    levels = [*NAMES, *(f"district {number}" for number in range(N_LEVELS - len(NAMES)))]
    titles = [*NAMES, *(f"treatment {number}" for number in range(N_TREATMENTS - len(NAMES)))]
    treatments = "".join(
        f"""
[treatments.t{number}]
title = {quoted(title)}
cost = {0.9 if number == N_TREATMENTS - 1 else 0.02 * number}
clears = {{ {"fever" if number % 2 else "cough"} = {0.05 * number} }}
"""
        for number, title in enumerate(titles)
    )
    shares = [round(1 / N_LEVELS, 4)] * N_LEVELS
    return f"""\
title = {quoted(MARKUP)}
source = {quoted(CHINESE)}

[features]
fever = {{}}
cough = {{}}
district = {{ levels = [{", ".join(map(quoted, levels))}], shares = {shares} }}

[[rules]]
source = "illustrative"
set = {{ fever = 0.4, cough = 0.5 }}
{treatments}
[natural_clearing]
fever = 0.1
cough = 0.1

[weights]
fever = 1.0
cough = 0.5
"""


def write_hard_study(folder: Path) -> Path:
    """The study and its scenario; returns the study's path."""
    (folder / "scenario.toml").write_text(scenario(), encoding="utf-8")
    path = folder / "study.toml"
    head = f'title = {quoted(TITLE)}\nscenario = "scenario.toml"\nseed = 1\n\n'
    path.write_text(head + privacy("exponential", "randomized-response", "optimal"), encoding="utf-8")
    return path


def privacy(*policies):
    """The end of a study file."""
    return PRIVACY.format(title=quoted(TITLE), policies=", ".join(map(quoted, policies)))


def write_hard_trial(folder: Path) -> Path:
    """A trial of twelve arms with such names, and as many districts; returns the study's path."""
    rng = np.random.default_rng(5)
    arms = [*NAMES, *(f"arm {number}" for number in range(N_TREATMENTS - len(NAMES)))]
    levels = [*NAMES, *(f"district {number}" for number in range(N_LEVELS - len(NAMES)))]
    with (folder / "trial.csv").open("w", encoding="utf-8", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(["arm", "district", "well"])
        for row in range(600):
            arm = row % N_TREATMENTS
            out.writerow([arm, levels[rng.integers(N_LEVELS)], int(rng.random() < 0.4 + 0.02 * arm)])
    path = folder / "trial.toml"
    path.write_text(
        f"""\
title = {quoted(TITLE)}
seed = 2

[data]
file = "trial.csv"
treatment = "arm"
propensity = "equal"
outcome = {{ well = 1.0 }}
range = [0, 1]

[data.treatments]
{"".join(f"{number} = {quoted(arm)}" + chr(10) for number, arm in enumerate(arms))}
[data.features]
district = {{ levels = [{", ".join(map(quoted, levels))}] }}

{privacy("best-fixed", "exponential", "optimal")}""",
        encoding="utf-8",
    )
    return path
