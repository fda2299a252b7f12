"""Rules that state the shares of levels: against a table written out by hand, and what is refused."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import envs
from envs.cohort import level_shares

TEXT = """\
[features]
side = {{ levels = ["left", "right"], shares = [0.25, 0.75] }}
size = {{ levels = ["small", "middle", "large"], shares = {shares} }}
late = {{}}

[[rules]]
when = {{ size = "large" }}
set = {{ late = 0.5 }}
[[rules]]
when = {{ side = "right" }}
shares = {{ size = {right} }}
[[rules]]
when = {{ side = ["left", "right"], late = 1 }}
add = {{ death = 0.1 }}
{more}
[events.relapse]
baseline = 0.1
[treatments.none]
[treatments.pill]
hazard_ratio = {{ relapse = 0.5 }}
[weights]
relapse = 1
death = 0
"""
WHOLE = st.lists(st.integers(0, 8), min_size=3, max_size=3).filter(any)


def load(folder, shares=(0.5, 0.25, 0.25), right=(0.25, 0.25, 0.5), more=""):
    path = folder / "s.toml"
    path.write_text(TEXT.format(shares=list(shares), right=list(right), more=more), encoding="utf-8")
    return envs.load_scenario(path)


def normalised(counts):
    return [count / sum(counts) for count in counts]


@given(WHOLE, WHOLE)
def test_the_prior_is_the_product_of_the_chances_of_each_feature_given_the_others(
    tmp_path_factory, counts, given_right
):
    own, right = normalised(counts), normalised(given_right)
    scenario = load(tmp_path_factory.mktemp("shares"), own, right)
    wanted = []
    for side, size, late in itertools.product(range(2), range(3), range(2)):
        chance = (0.25, 0.75)[side] * (own, right)[side][size]
        lateness = 0.5 if size == 2 else 0.0
        wanted.append(chance * (lateness if late else 1 - lateness))
    assert envs.prior(scenario) == pytest.approx(wanted, abs=1e-15)


def test_the_last_rule_that_applies_decides(tmp_path):
    more = '[[rules]]\nwhen = { side = "right", late = 0 }\nshares = { size = [0, 0, 1] }\n'
    with pytest.raises(envs.InputFileError, match="circle"):
        load(tmp_path, more=more)  # late is made of size
    more = "[[rules]]\nshares = { size = [0, 0, 1] }\n"
    assert (level_shares(load(tmp_path, more=more), "size").reshape(2, 3) == [0, 0, 1]).all()


def test_without_a_flag_that_clears_events_are_what_is_observed(tmp_path):
    scenario = load(tmp_path)
    assert scenario.outcomes == ("relapse", "death")
    found = envs.ResponseModel(scenario).probability("relapse")
    assert found == pytest.approx(np.tile(-np.expm1([-0.1, -0.05]), (12, 1)))


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ("size = [0.5, 0.5]", "rules[3].shares.size: must be one probability per level (3), got 2"),
        ("size = [0.5, 0.5, 0.5]", "rules[3].shares.size: must sum to 1, got 1.5"),
        ("size = 1", "rules[3].shares.size: must be a list of a probability in [0, 1], got 1"),
        ("late = [0.5, 0.5]", "rules[3].shares.late: unknown feature with levels 'late'; known: side, size"),
        ("sise = [1, 0, 0]", "rules[3].shares.sise: unknown feature with levels 'sise'; did you mean 'size'? known: "),
    ],
)
def test_what_are_no_shares_of_levels_is_refused(tmp_path, shares, message):
    with pytest.raises(envs.InputFileError) as error:
        load(tmp_path, more=f"[[rules]]\nshares = {{ {shares} }}\n")
    line, _, said = str(error.value).removeprefix(f"{(tmp_path / 's.toml').as_posix()}:").partition(": ")
    assert said.startswith(message)
    assert line == "16"
