"""The local model: each person's value is randomised before anybody else sees it.

channel        Channel: what a report reveals, exactly; reports, and probabilities as whole numbers
response       two-coin response to a yes-or-no question, k-ary response, also for several columns, and unary encoding
estimation     shares of the true values from reports, with intervals; maximum likelihood; expected errors, their bands
"""

from policies.local.channel import Channel, Reports, count_reports, privatize
from policies.local.estimation import (
    METHODS,
    ErrorBands,
    Estimate,
    ExpectedErrors,
    error_bands,
    estimate,
    expected_errors,
    most_likely_shares,
    project_onto_simplex,
)
from policies.local.response import KAry, TwoCoin, Unary

__all__ = [
    "METHODS",
    "Channel",
    "ErrorBands",
    "Estimate",
    "ExpectedErrors",
    "KAry",
    "Reports",
    "TwoCoin",
    "Unary",
    "count_reports",
    "error_bands",
    "estimate",
    "expected_errors",
    "most_likely_shares",
    "privatize",
    "project_onto_simplex",
]
