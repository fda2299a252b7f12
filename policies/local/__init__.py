"""The local model: each person's value is randomised before anybody else sees it.

channel        Channel: what a report reveals, exactly; reports, from the operating system's randomness or a generator
two_coin       two-coin response to a yes-or-no question, with any biases
k_ary          k-ary response, for one column or jointly for several
unary          unary encoding, for many categories, and maximum likelihood from whole reports
channel_names  the mechanisms by name
estimation     shares of the true values from counts of reports, with intervals; expected errors, and their bands
likelihood     maximum likelihood, in closed form and by EM; the nearest proportions
parameters     what parameters may be, and probabilities as whole numbers
"""

from policies.local.channel import Channel, Reports, count_reports, privatize
from policies.local.channel_names import CHANNELS, channel_from
from policies.local.estimation import (
    METHODS,
    ErrorBands,
    Estimate,
    ExpectedErrors,
    error_bands,
    estimate,
    expected_errors,
)
from policies.local.k_ary import KAry
from policies.local.likelihood import expectation_maximization, most_likely_shares, project_onto_simplex
from policies.local.two_coin import TwoCoin
from policies.local.unary import Unary, estimate_bits

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
