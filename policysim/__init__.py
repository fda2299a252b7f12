"""policysim: what does choosing treatments privately cost the patients?

utility   the expected utility of each record and treatment
study, study_file   what to compute, and as a file (built-in ones in studies/)
problem   from a study to the decision problem
evaluate  exact evaluation of action probabilities, overall and per group
comparison  policies over epsilon, as a tidy table
search    the smallest epsilon that is good enough
prices    what hiding each feature costs at best
wrong_prior, robustness   how far results depend on the prior and on illustrative effects
limit, choose   what no mechanism can do; which epsilon, which mechanism
sweep     what comparisons share: which policies at which epsilon
processes/  decisions over days: any tabular process, and treatment over days
days/     treatment over days within a total privacy budget
simulation, simulated_log   the check by Monte Carlo; the simulator's own log
select_private, select_screen   one private choice from counts (counts_file)
privatize (privatize_codes, privatize_ledger, privatize_note, privatize_screen)   randomised response on columns of a
          file (columns_file), and how often it was released
sources/  the studies of source documents
offpolicy/  what a policy is worth to the patients of a log, estimated
logs/     reading logs: declared features, treatments, outcomes
logged/   policies learned from one part of a log, and their value on the other
evaluation/  a policy made elsewhere on a log
record/, basis   the decision record: one page that people sign, and a methods paragraph
notebooks/   what notebooks show of tables
audit     claimed and exact privacy loss, also of a table made elsewhere (probability_table)
findings, drivers, patient_losses, example_patients   what a comparison found, as numbers
words, text   numbers in words, lines of text
screen, choice_screen, audit_screen, figures/, figure_files, report/, output   what people see and keep
reproduce/, gallery   a report made again, and all of them on one page
cli, parsers, options, console, commands/   the command line, a module each command

The names below are loaded when they are first used, so that `import policysim` costs nothing; registration adds the
environments to Gymnasium when that is imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from policysim.registration import register

if TYPE_CHECKING:
    from envs.scenario_file import load_scenario
    from policies.adjacency import AnyRecord, OneFeature, Sensitive
    from policies.catalogue import make_policy
    from policies.privacy_loss import PrivacyLoss, privacy_loss
    from policies.problem import DecisionProblem
    from policies.selection import Selection, select
    from policies.sensitivity import Sensitivity, sensitivity
    from policysim.comparison import compare
    from policysim.logs.frame import read_log
    from policysim.offpolicy.evaluation import evaluate_log
    from policysim.offpolicy.result import OffPolicyEstimate
    from policysim.problem import build_problem
    from policysim.processes.budget import PrivacyBudget
    from policysim.processes.planning import plan, policy_value
    from policysim.processes.privatize_policy import privatize_policy
    from policysim.processes.tabular import TabularMDP
    from policysim.processes.treatment_course import build_course
    from policysim.search import smallest_epsilon
    from policysim.study import Study
    from policysim.study_file import load_study

_HOME = {
    "AnyRecord": "policies.adjacency",
    "DecisionProblem": "policies.problem",
    "InfiniteLossWarning": "policysim.processes.process",
    "OffPolicyEstimate": "policysim.offpolicy.result",
    "OneFeature": "policies.adjacency",
    "PrivacyBudget": "policysim.processes.budget",
    "PrivacyLoss": "policies.privacy_loss",
    "Selection": "policies.selection",
    "Sensitive": "policies.adjacency",
    "Sensitivity": "policies.sensitivity",
    "Study": "policysim.study",
    "TabularMDP": "policysim.processes.tabular",
    "build_course": "policysim.processes.treatment_course",
    "build_problem": "policysim.problem",
    "compare": "policysim.comparison",
    "evaluate_log": "policysim.offpolicy.evaluation",
    "load_scenario": "envs.scenario_file",
    "load_study": "policysim.study_file",
    "make_policy": "policies.catalogue",
    "plan": "policysim.processes.planning",
    "policy_value": "policysim.processes.planning",
    "privacy_loss": "policies.privacy_loss",
    "privatize_policy": "policysim.processes.privatize_policy",
    "read_log": "policysim.logs.frame",
    "select": "policies.selection",
    "sensitivity": "policies.sensitivity",
    "smallest_epsilon": "policysim.search",
}

__all__ = [
    "AnyRecord",
    "DecisionProblem",
    "InfiniteLossWarning",
    "OffPolicyEstimate",
    "OneFeature",
    "PrivacyBudget",
    "PrivacyLoss",
    "Selection",
    "Sensitive",
    "Sensitivity",
    "Study",
    "TabularMDP",
    "build_course",
    "build_problem",
    "compare",
    "evaluate_log",
    "load_scenario",
    "load_study",
    "make_policy",
    "plan",
    "policy_value",
    "privacy_loss",
    "privatize_policy",
    "read_log",
    "select",
    "sensitivity",
    "smallest_epsilon",
]


def __getattr__(name: str) -> object:
    """Load a public name on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'policysim' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *_HOME})


register()
