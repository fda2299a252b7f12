"""What is computed of a study, and what it found, for tests that look at single parts of it."""

from policysim.decision.findings import find

from policysim.decision.redraws import redrawn, robustness
from policysim.decision.results import Asked, results
from policysim.study.labels import labels_of


def results_of(study, problem, *, prices=False):
    return results(problem, labels_of(study, problem), Asked.of(study, prices=prices), study=study)


def findings_of(study, problem):
    return find(results_of(study, problem), study)


def ranked_in_redraws(study, problem, names):
    """The robustness of some policies at the study's epsilon."""
    made = [study.policy(name, study.epsilon) for name in dict.fromkeys([*names, "best-fixed"])]
    return robustness(redrawn(study, problem, made), names)
