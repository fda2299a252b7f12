"""What is computed of a study, and the tables of its answer, for tests that look at single parts of it."""

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
