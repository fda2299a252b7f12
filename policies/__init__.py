"""The private draw: utilities in, action probabilities out, and everything that the draw reveals.

adjacency      which records must be hard to tell apart, over all records or a list of them
sensitivity    how far utilities can move between neighbours, exactly
privacy_loss   what a table of action probabilities reveals, exactly: its loss, and to somebody who guesses
problem        DecisionProblem: utilities, prior, adjacency, records; results kept for each problem
records        what a problem knows about its records; rows of a table as record numbers, and back
levels         what a level is: the one rule by which a cell of a table is a level of a feature
mask           which actions a record allows
distinct       each distinct row once, where a policy is the same on these
policy         Policy: probabilities, guarantee and sampler; what keeps every mechanism to what records allow
fitted         FittedPolicy: a policy's table on one problem, computed once, and treatments drawn by it
sampler        Sampler: many choices from one table, and its compiled loop
reference      greedy, uniform, best-fixed
exponential    the exponential mechanism: as published, and fitted between public floors and ceilings
boxes          what lies between public floors and ceilings is private: the rows of the fitted mechanism
private_model  the choice of a model made private; model_scores: how a classifier, an agent or a function is asked
noisy_max      mechanisms with noisy scores: report noisy max, permute-and-flip
randomized_response  randomised response on the decision, or on the record and then the best decision
optimal/       the limit: the private policy of highest value, its parts and its proof
proof          what makes a proof that no private policy can, decided in rational numbers
catalogue      the policies by name, what each is and whom to cite for it (descriptions.toml)
selection      a private selection from one score per candidate; selection_release: the draw in whole numbers
discrete_laplace   noise for counts, in whole numbers, drawn exactly
local/         randomised response on each person's value: channels, reports, estimation
accounting     what several uses cost together; eta of a policy, which says how its uses add up
privacy_profile  delta at each epsilon of a table, and the pair of distributions that has the same
masked         decisions of a process in which not every state allows every action
arrays         array types, their checks, exact sums, equal rows
html_table     how notebooks show the objects of this package

Arrays in, arrays out: this package knows no patients, no files and no figures.
"""

from policies.adjacency import Adjacency, AnyRecord, OneFeature, Sensitive
from policies.catalogue import CATALOGUE, make_policy
from policies.fitted import FittedPolicy
from policies.policy import Policy
from policies.privacy_loss import GuessRate, PrivacyLoss, guess_rate, privacy_loss
from policies.problem import DecisionProblem
from policies.sampler import Sampler
from policies.sensitivity import Sensitivity, Witness, sensitivity

__all__ = [
    "CATALOGUE",
    "Adjacency",
    "AnyRecord",
    "DecisionProblem",
    "FittedPolicy",
    "GuessRate",
    "OneFeature",
    "Policy",
    "PrivacyLoss",
    "Sampler",
    "Sensitive",
    "Sensitivity",
    "Witness",
    "guess_rate",
    "make_policy",
    "privacy_loss",
    "sensitivity",
]
