"""The local model: each person's value is randomised before anybody else sees it.

channel      Channel: what a report reveals, exactly, and what it says about the values
two_coin     two-coin response to a yes-or-no question, with any biases
k_ary        k-ary response, for one column or jointly for several
unary        unary encoding, for many categories
catalogue    the mechanisms by name
thresholds   probabilities as whole numbers: no floating-point step between the random bits and a report
release      reports, from the operating system's randomness or, for simulation, from a generator
estimation   shares of the true values from counts of reports, with intervals
likelihood   maximum likelihood: in closed form and by EM
bits         maximum likelihood from whole unary reports
simplex      the nearest proportions
errors       expected errors, and the band that the errors of one run lie in
checks       what parameters may be
"""

from policies.local.bits import estimate_bits
from policies.local.catalogue import CHANNELS, channel_from
from policies.local.channel import Channel, Reports
from policies.local.errors import ErrorBands, ExpectedErrors, error_bands, expected_errors
from policies.local.estimation import METHODS, Estimate, estimate
from policies.local.k_ary import KAry
from policies.local.likelihood import expectation_maximization, most_likely_shares
from policies.local.release import count_reports, privatize
from policies.local.simplex import project_onto_simplex
from policies.local.two_coin import TwoCoin
from policies.local.unary import Unary

__all__ = [
    "CHANNELS",
    "METHODS",
    "Channel",
    "ErrorBands",
    "Estimate",
    "ExpectedErrors",
    "KAry",
    "Reports",
    "TwoCoin",
    "Unary",
    "channel_from",
    "count_reports",
    "error_bands",
    "estimate",
    "estimate_bits",
    "expectation_maximization",
    "expected_errors",
    "most_likely_shares",
    "privatize",
    "project_onto_simplex",
]
