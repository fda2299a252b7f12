"""Off-policy evaluation: what a policy is worth to the patients of a log in which another policy chose.

evaluation      evaluate_log: from a data frame to an estimate
log_frame       the columns action, reward and propensity, read and checked
policy_frame    the evaluated policy as a data frame
covariates      all other columns, as numbers
support         groups of patients to whom the log seems never to give an action, by its weights
holes           the same from raw counts, where propensities are estimated too
checks          refusals that name rows
logged          LoggedData: a log as arrays
estimation      estimate_value: from arrays to an estimate; contributions: the same, row by row
weights         importance weights: effective sample size, largest weight, clipping
estimators      what each row adds to IPS, SNIPS and the doubly robust estimate
cross_fitting   outcome models, each fitted without the rows that it predicts; the direct method
outcome_models  models of the reward, by name, from scikit-learn
caveats         what may be wrong with an estimate, in words
result          OffPolicyEstimate

Everything but evaluation, log_frame, policy_frame, covariates, support and holes takes arrays.
"""

from policysim.offpolicy.cross_fitting import CrossFit, cross_fit
from policysim.offpolicy.estimation import ESTIMATORS, contributions, estimate_value
from policysim.offpolicy.evaluation import evaluate_log
from policysim.offpolicy.logged import LoggedData
from policysim.offpolicy.outcome_models import OUTCOME_MODELS, OutcomeModel, fit_outcome_model
from policysim.offpolicy.result import OffPolicyEstimate
from policysim.offpolicy.weights import importance_weights

__all__ = [
    "ESTIMATORS",
    "OUTCOME_MODELS",
    "CrossFit",
    "LoggedData",
    "OffPolicyEstimate",
    "OutcomeModel",
    "contributions",
    "cross_fit",
    "estimate_value",
    "evaluate_log",
    "fit_outcome_model",
    "importance_weights",
]
