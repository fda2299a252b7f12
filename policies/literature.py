"""The works that the policies are from, each named once; a policy lists its own in `Policy.works`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """A publication: as named in a sentence, and in full."""

    short: str
    full: str


DANTZIG_WOLFE_1960 = Work(
    "Dantzig & Wolfe 1960",
    "Dantzig GB, Wolfe P (1960). Decomposition principle for linear programs. Operations Research 8(1), 101–111.",
)
WARNER_1965 = Work(
    "Warner 1965",
    "Warner SL (1965). Randomized response: a survey technique for eliminating evasive answer bias. Journal of the "
    "American Statistical Association 60(309), 63–69.",
)
MCSHERRY_TALWAR_2007 = Work(
    "McSherry & Talwar 2007",
    "McSherry F, Talwar K (2007). Mechanism design via differential privacy. 48th IEEE Symposium on Foundations of "
    "Computer Science (FOCS), 94–103.",
)
GHOSH_2012 = Work(
    "Ghosh et al. 2012",
    "Ghosh A, Roughgarden T, Sundararajan M (2012). Universally utility-maximizing privacy mechanisms. SIAM Journal "
    "on Computing 41(6), 1673–1693.",
)
DWORK_ROTH_2014 = Work(
    "Dwork & Roth 2014",
    "Dwork C, Roth A (2014). The algorithmic foundations of differential privacy. Foundations and Trends in "
    "Theoretical Computer Science 9(3–4), 211–407.",
)
KAIROUZ_2016 = Work(
    "Kairouz et al. 2016",
    "Kairouz P, Oh S, Viswanath P (2016). Extremal mechanisms for local differential privacy. Journal of Machine "
    "Learning Research 17(17), 1–51.",
)
DURFEE_ROGERS_2019 = Work(
    "Durfee & Rogers 2019",
    "Durfee D, Rogers R (2019). Practical differentially private top-k selection with pay-what-you-get composition. "
    "Advances in Neural Information Processing Systems 32, 3532–3542.",
)
MCKENNA_SHELDON_2020 = Work(
    "McKenna & Sheldon 2020",
    "McKenna R, Sheldon D (2020). Permute-and-flip: a new mechanism for differentially private selection. Advances in "
    "Neural Information Processing Systems 33.",
)
