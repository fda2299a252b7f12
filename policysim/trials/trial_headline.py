"""What a log of patients shows, as a title with one number: the gain from choosing for each, or that none is seen."""

from __future__ import annotations

import math

from policysim.question.answer import Headline
from policysim.question.formats import estimate, interval, rounded
from policysim.trials.trial_findings import LoggedFindings, individual


def headline(findings: LoggedFindings) -> Headline:
    """What a comparison on a log found, in the fewest words; a gain is named only where its interval is above 0."""
    gain, for_all = findings.gain, f"giving everybody {findings.one_for_all}"
    about = (
        "is the change of the mean outcome if each patient's treatment is chosen by fitted scores, without privacy "
        f"(95\u00a0% interval {interval(*gain[1:], sign=True)})"
    )
    if findings.provided and any(gain):
        about += f"; {findings.provided}"
    if findings.not_covered:
        title = f"This log cannot show whether choosing for each patient is better than {for_all}"
    elif not any(gain):
        return Headline(f"Fitted scores choose as well for each patient as {for_all}")
    elif gain[1] > 0:
        title = f"Choosing for each patient is better than {for_all}{_private(findings)}"
    elif gain[2] < 0:
        title = f"Choosing for each patient by fitted scores is worse than {for_all}"
    else:
        title = f"{findings.n_used:,} patients show no gain from choosing for each of them over {for_all}"
    return Headline(title, estimate(*gain, sign=True), about)


def _private(findings: LoggedFindings) -> str:
    """From which epsilon a private choice is, too."""
    surely = min((row.surely_from for row in individual(findings.rows)), default=math.inf)
    if not math.isfinite(surely):
        return ", but not privately at any ε that was computed"
    return f", and a private choice first at ε = {rounded(surely)}"
