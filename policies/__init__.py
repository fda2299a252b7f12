"""The private choice: utilities in, action probabilities out, and everything that the choice reveals.

adjacency      who must be hard to tell from whom
sensitivity    how far utilities can move between neighbours, exactly
privacy_loss   what a table of action probabilities reveals, exactly
problem        DecisionProblem: utilities, prior, adjacency
policy         Policy: probabilities, guarantee and sampler in one
reference      greedy, uniform, best-fixed
exponential    the exponential mechanism and its calibrations
response       randomised response on the decision
catalogue      the policies by name

Arrays in, arrays out: this package knows no patients, no files and no figures.
"""

from policies.adjacency import Adjacency, AnyRecord, OneFeature, Sensitive
from policies.catalogue import CATALOGUE, make_policy
from policies.policy import Policy
from policies.privacy_loss import PrivacyLoss, privacy_loss
from policies.problem import DecisionProblem
from policies.sensitivity import Sensitivity, Witness, sensitivity

__all__ = [
    "CATALOGUE",
    "Adjacency",
    "AnyRecord",
    "DecisionProblem",
    "OneFeature",
    "Policy",
    "PrivacyLoss",
    "Sensitive",
    "Sensitivity",
    "Witness",
    "make_policy",
    "privacy_loss",
    "sensitivity",
]
