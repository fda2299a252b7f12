"""What is computed of a study, and the tables of its answer, for tests that look at single parts of it."""

from functools import cached_property

import policysim as ps
from policysim.decision.decision_answer import answer_tables
from policysim.decision.results import Asked, results
from policysim.study.labels import labels_of


def results_of(study, problem, *, prices=False):
    return results(problem, labels_of(study, problem), Asked.of(study, prices=prices), study=study)


def tables_of(study, problem=None, *, prices=False):
    """The tables that are printed."""
    problem = ps.build_problem(study) if problem is None else problem
    return answer_tables(results_of(study, problem, prices=prices), study=study)


class Decision:
    """A study, its problem, what is computed of it and the tables that are printed: each when it is first asked for."""

    def __init__(self, of):
        self.study = ps.load_study(of)

    @cached_property
    def problem(self):
        return ps.build_problem(self.study)

    @cached_property
    def results(self):
        return results_of(self.study, self.problem)

    @cached_property
    def tables(self):
        return answer_tables(self.results, study=self.study)
