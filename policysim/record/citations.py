"""Each policy of the catalogue in words, and the works to cite for it: the one place where either is written."""

from __future__ import annotations

from dataclasses import dataclass

from policies.calibration import ExponentialMonotone, ExponentialTight
from policies.capped import ExponentialCapped
from policies.exponential import Exponential, ExponentialBoundedRange
from policies.noisy_max import ReportNoisyMax
from policies.optimal import Optimal
from policies.permute_and_flip import PermuteAndFlip
from policies.randomized_features import RandomizedFeatures
from policies.reference import BestFixed
from policies.response import RandomizedResponse


@dataclass(frozen=True)
class Work:
    """A publication: as named in a sentence, and in full."""

    short: str
    full: str


@dataclass(frozen=True)
class Method:
    """A policy in words, which complete "treatments are chosen by", and the works that it is from."""

    words: str
    works: tuple[Work, ...]


DWORK_2006 = Work(
    "Dwork et al. 2006",
    "Dwork C, McSherry F, Nissim K, Smith A (2006). Calibrating noise to sensitivity in private data analysis. Theory "
    "of Cryptography (TCC), 265–284.",
)
DWORK_ROTH_2014 = Work(
    "Dwork & Roth 2014",
    "Dwork C, Roth A (2014). The algorithmic foundations of differential privacy. Foundations and Trends in "
    "Theoretical Computer Science 9(3–4), 211–407.",
)
MCSHERRY_TALWAR_2007 = Work(
    "McSherry & Talwar 2007",
    "McSherry F, Talwar K (2007). Mechanism design via differential privacy. 48th IEEE Symposium on Foundations of "
    "Computer Science (FOCS), 94–103.",
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
WARNER_1965 = Work(
    "Warner 1965",
    "Warner SL (1965). Randomized response: a survey technique for eliminating evasive answer bias. Journal of the "
    "American Statistical Association 60(309), 63–69.",
)
KAIROUZ_2016 = Work(
    "Kairouz et al. 2016",
    "Kairouz P, Oh S, Viswanath P (2016). Extremal mechanisms for local differential privacy. Journal of Machine "
    "Learning Research 17(17), 1–51.",
)
GHOSH_2012 = Work(
    "Ghosh et al. 2012",
    "Ghosh A, Roughgarden T, Sundararajan M (2012). Universally utility-maximizing privacy mechanisms. SIAM Journal "
    "on Computing 41(6), 1673–1693.",
)

# What epsilon means, and what no mechanism can do.
DEFINITION = (DWORK_2006,)
LIMIT = (GHOSH_2012, KAIROUZ_2016)
# The policies that can be chosen: those that have an epsilon to choose, and the one that needs none.
METHODS: dict[str, Method] = {
    BestFixed.name: Method("taking the same one for everybody, that of the highest expected utility", ()),
    Exponential.name: Method(
        "the exponential mechanism, its scale set by the sensitivity of the utilities", (MCSHERRY_TALWAR_2007,)
    ),
    ExponentialMonotone.name: Method(
        "the exponential mechanism for monotone utilities, its scale set by their sensitivity", (MCSHERRY_TALWAR_2007,)
    ),
    ExponentialBoundedRange.name: Method(
        "the exponential mechanism, its scale set by the range of the differences in utility",
        (MCSHERRY_TALWAR_2007, DURFEE_ROGERS_2019),
    ),
    ExponentialTight.name: Method(
        "the exponential mechanism at the smallest scale whose exact privacy loss is within ε", (MCSHERRY_TALWAR_2007,)
    ),
    ExponentialCapped.name: Method(
        "the exponential mechanism on regrets that are cut off at a public cap, its scale set by their range",
        (MCSHERRY_TALWAR_2007, DURFEE_ROGERS_2019),
    ),
    PermuteAndFlip.name: Method(
        "permute-and-flip, which visits the treatments in random order and takes each with a probability that falls "
        "with its regret",
        (MCKENNA_SHELDON_2020,),
    ),
    ReportNoisyMax.name: Method(
        "report-noisy-max, which takes the treatment of the highest utility after Laplace noise", (DWORK_ROTH_2014,)
    ),
    RandomizedResponse.name: Method(
        "k-ary randomised response, which takes the best treatment with the largest probability that ε allows, and "
        "each other one with the same remaining probability",
        (WARNER_1965, KAIROUZ_2016),
    ),
    RandomizedFeatures.name: Method(
        "k-ary randomised response on each hidden feature of the record, followed by the best treatment for what it "
        "shows",
        (WARNER_1965, KAIROUZ_2016),
    ),
    Optimal.name: Method(
        "the ε-private mechanism of the highest expected utility under the prior, found by linear programming",
        (GHOSH_2012, KAIROUZ_2016),
    ),
}


def cited(works: tuple[Work, ...]) -> str:
    """Works as they are named in a sentence: (A 2007; B 2019)."""
    return f"({'; '.join(work.short for work in works)})"
