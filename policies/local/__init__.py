"""The local model: each person's value is randomised before anybody else sees it.

channel        Channel: what a report reveals, exactly; reports, and probabilities as whole numbers
response       two-coin response to a yes-or-no question, k-ary response, also for several columns, and unary encoding
estimation     shares of the true values from reports, with intervals; maximum likelihood; expected errors, their bands
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from policies.local.channel import Channel, Reports, count_reports, privatize
from policies.local.estimation import (
    METHODS,
    ErrorBands,
    Estimate,
    ExpectedErrors,
    error_bands,
    estimate,
    estimate_bits,
    expectation_maximization,
    expected_errors,
    most_likely_shares,
    project_onto_simplex,
)
from policies.local.response import KAry, TwoCoin, Unary

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

CHANNELS: dict[str, type[TwoCoin | KAry | Unary]] = {channel.name: channel for channel in (TwoCoin, KAry, Unary)}


def channel_from(name: str, parameters: Mapping[str, Any]) -> Channel:
    """The channel with this name and these parameters: the inverse of `Channel.name` and `Channel.parameters`.

    Parameters
    ----------
    name : str
        "two-coin", "k-ary" or "unary".
    parameters : mapping
        All of the channel's parameters.

    Returns
    -------
    Channel

    Raises
    ------
    ValueError
        For an unknown name, parameters that are missing or unknown, or values that the channel does not allow.

    Examples
    --------
    >>> channel_from("k-ary", {"n_values": 4, "epsilon": 1.0})
    KAry(n_values=4, epsilon=1.0)
    """
    if name not in CHANNELS:
        raise ValueError(f"the mechanism must be one of {', '.join(CHANNELS)}, got {name!r}.")
    needed = {field.name for field in fields(CHANNELS[name]) if field.init}
    if set(parameters) != needed:
        got = ", ".join(map(str, parameters)) or "none"
        raise ValueError(f"a {name} mechanism needs the parameters {', '.join(sorted(needed))}, got {got}.")
    return CHANNELS[name](**parameters)
