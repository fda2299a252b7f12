"""What is computed of a study, for tests that look at single parts of it."""

from functools import cached_property

import policysim as ps
from policysim.decision.report import report


class Decision:
    """A study, its problem and its report: each when it is first asked for."""

    def __init__(self, of):
        self.study = ps.load_study(of)

    @cached_property
    def problem(self):
        return ps.build_problem(self.study)

    @cached_property
    def report(self):
        return report(self.study)
