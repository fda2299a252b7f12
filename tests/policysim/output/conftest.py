"""A report with all that a page can hold: covid's epsilons and policies, groups and prices; and one with less."""

import pytest
from drawings import draw_only
from report_pages import make_report
from small_studies import SCENARIO, STUDY

from policysim.study.sweep import EPSILONS


@pytest.fixture(scope="session")
def full(tmp_path_factory):
    text = (
        STUDY.replace("[0.5, 1.0, 4.0]", str(list(EPSILONS)))
        .replace(
            '["greedy", "best-fixed", "uniform", "exponential", "randomized-response"]',
            '["best-fixed", "exponential", "exponential-fitted", "randomized-response", "optimal"]',
        )
        .replace('["age", "infected"]', '["age", "infected", "smoker", "fever"]')
    )
    scenario = SCENARIO.replace('title = "syrup"', "title = 'is 1 < 2 & \"safe\"?'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("policysim.decision.redraws.REDRAWS", 20)
        return make_report(tmp_path_factory.mktemp("full"), text, prices=True, formats=("svg",), scenario=scenario)


@pytest.fixture(scope="session")
def bounded(tmp_path_factory):
    """A study whose optimum can only be bounded; its drawings are blank."""
    text = STUDY.replace('"any-record"', '"one-feature"').replace('"randomized-response"]', '"optimal"]')
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch)
        patch.setattr("policies.optimal.whole_programme.MAX_ENTRIES", 12)
        return make_report(tmp_path_factory.mktemp("bounded"), text)
