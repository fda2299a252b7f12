"""What people read, whatever it is about: numbers in words, and names that tables share.

Numbers have no more digits than the inputs support, which is two; bounds are rounded so that they claim less.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

DIGITS = 2
# Numbers in files for machines: more would differ from one processor to another.
DIGITS_OF_FILES = 8
# Of a sensitivity, parts of which are said beside it in per cent.
SENSITIVITY_DIGITS = 3
MOST_COUNTED = 10_000_000
# Smaller numbers are what rounding leaves of 0.
NEGLIGIBLE = 1e-12
# Fewer events than this, in as many patients as show two digits, are not told from none.
LEAST_EVENTS = 0.01
# In tables: all patients; and in the place of a policy's name, the schedule for all, one private choice of a schedule,
# and the bounds of the limit.
ALL, BEST_SCHEDULE, PLAN_ONCE = "all", "best-schedule", "plan-once"
ACHIEVABLE, UNBEATABLE = "optimal-achievable", "optimal-unbeatable"
# A policy that keeps less than what is proven to be the most by no more than this, as a share, keeps the most.
TIGHT = 1e-6
# The benefit kept that tables and headlines ask for.
KEEP = 0.8
ASSUMED_PUBLIC = "the domain, the prior, the utility model, the base measure and the choice of ε"
NO_ADVICE = "not medical advice"
# Of whom a limit holds: where a publication alone is seen, what is given may be another treatment.
NO_MECHANISM = "no mechanism that gives what it publishes"


def steady(value: float) -> float:
    """A number to eleven digits: one half way between two texts gets the same text whatever its last bits are.

    Examples
    --------
    >>> [f"{value:.2g}" for value in (0.125 - 1e-14, 0.125 + 1e-14)]
    ['0.12', '0.13']
    >>> [f"{steady(value):.2g}" for value in (0.125 - 1e-14, 0.125 + 1e-14)]
    ['0.12', '0.12']
    """
    return float(f"{value:.11g}")


def in_digits(value: float) -> str:
    """A number as files for machines have it."""
    return f"{value:.{DIGITS_OF_FILES}g}"


def rounded(value: float, *, sign: bool = False, digits: int = DIGITS) -> str:
    """Two significant digits, or so many, with thousands separators: 0.16, 3,900, ∞; – for NaN."""
    if math.isnan(value):
        return "–"
    if abs(value) < NEGLIGIBLE:
        return "0"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    value = steady(value)
    near = round(value, digits - 1 - math.floor(math.log10(abs(value))))
    if abs(value) < 1e-4:
        return _minus(f"{value:{'+' if sign else ''}.1e}")
    # Rounding may carry into another digit (0.099 -> 0.1), so the digits shown are counted again.
    shown = max(0, digits - 1 - math.floor(math.log10(abs(near))))
    return _minus(f"{near:{'+' if sign else ''},.{shown}f}")


def rounded_down(value: float, digits: int = DIGITS) -> str:
    """A lower bound with so many significant digits, never above it: "no mechanism does it below" stays true."""
    return _bound(value, digits, ROUND_FLOOR)


def rounded_up(value: float, digits: int = DIGITS) -> str:
    """An upper bound, or what is enough, with so many significant digits, never below it."""
    return _bound(value, digits, ROUND_CEILING)


def percent_up(share: float) -> str:
    """A share that nothing exceeds, as a whole percentage, never below it."""
    if math.isnan(share) or abs(share) < NEGLIGIBLE:
        return percent(share)
    return _minus(f"{_cut(100 * _shortest(share), 0, ROUND_CEILING)}\u00a0%")


def percent_1_up(share: float) -> str:
    """A share that nothing exceeds, in per cent to a tenth, never below it: beside what `percent_1` shows."""
    if math.isnan(share) or abs(share) < NEGLIGIBLE:
        return percent(share)
    return _minus(f"{_cut(100 * _shortest(steady(share)), 1)}\u00a0%")


def percent_down(share: float) -> str:
    """A share that is reached, as a whole percentage, never above it."""
    if math.isnan(share) or abs(share) < NEGLIGIBLE:
        return percent(share)
    return _minus(f"{_cut(100 * _shortest(share), 0, ROUND_FLOOR)}\u00a0%")


def enough(value: float, digits: int) -> float:
    """The number that `rounded_up` shows."""
    return _in_digits(value, digits, ROUND_CEILING)


def not_above(value: float, digits: int) -> float:
    """The number that `rounded_down` shows."""
    return _in_digits(value, digits, ROUND_FLOOR)


def _in_digits(value: float, digits: int, side: str) -> float:
    return float(Context(prec=digits, rounding=side).create_decimal(_shortest(value)))


def decimal(value: float) -> str:
    """A number that was rounded up, in all its digits and at least two: as a float, the text is exactly the number.

    Examples
    --------
    >>> decimal(3.0), decimal(3.22), decimal(12000.0), decimal(7e-06), decimal(float("inf"))
    ('3.0', '3.22', '12000', '7.0e-6', '∞')
    """
    if not math.isfinite(value) or value == 0:
        return rounded(value)
    number = _shortest(value)
    places = digits_of(value) - 1
    return f"{number:.{places}e}" if value < 1e-4 else f"{number:.{max(0, places - number.adjusted())}f}"


def next_below(value: float) -> float:
    """The next smaller number in as many digits as `decimal` shows of a number above 0.

    Examples
    --------
    >>> next_below(3.3), next_below(3.22), next_below(10.0), next_below(180.0)
    (3.2, 3.21, 9.9, 170.0)
    """
    return float(Context(prec=digits_of(value)).next_minus(_shortest(value)))


def digits_of(value: float) -> int:
    """The significant digits that `decimal` shows."""
    return max(DIGITS, len(_shortest(value).normalize().as_tuple().digits))


def _bound(value: float, digits: int, side: str) -> str:
    if not math.isfinite(value) or abs(value) < NEGLIGIBLE:
        return rounded(value)
    near = _cut(_shortest(value), digits - 1 - math.floor(math.log10(abs(value))), side)
    if near and abs(near) < Decimal("1e-4"):
        return _minus(f"{float(near):.{digits - 1}e}")
    # As in `rounded`: the carry into another digit.
    shown = max(0, digits - 1 - near.adjusted()) if near else 0
    return _minus(f"{near:,.{shown}f}")


def _shortest(value: float) -> Decimal:
    """The shortest decimal that is this float: 0.45 is a little more than 45 %, by less than any value is known."""
    return Decimal(repr(float(value)))


def _cut(value: Decimal, places: int, side: str = ROUND_CEILING) -> Decimal:
    """A number with so many decimals, rounded to one side: the one place where bounds are rounded."""
    return value.quantize(Decimal(1).scaleb(-places), rounding=side, context=Context(prec=400))


def apart(rates: Iterable[float], count: int) -> int:
    """The fewest decimals, at most two, that show how far rates among `count` patients are apart, to half of it.

    Examples
    --------
    >>> apart([0.0053, 0.003002, 0.003], 100_000), apart([0.0053, 0.003], 100_000)
    (1, 0)
    """
    numbers = sorted(rate * count for rate in rates)
    pairs = [(a, b) for a, b in itertools.pairwise(numbers) if b - a >= LEAST_EVENTS]

    def shows(places: int) -> bool:
        return all(abs(round(b, places) - round(a, places) - (b - a)) <= (b - a) / 2 for a, b in pairs)

    return next((places for places in range(2) if shows(places)), 2)


def counted(rate: float, count: int, places: int) -> str:
    """How many events a rate means among `count` patients, with so many decimals."""
    return _minus(f"{steady(rate * count):z,.{places}f}")


def events(rate: float, count: int, *, sign: bool = False) -> str:
    """How many events a rate means among `count` patients: two digits, and nothing finer than a hundredth."""
    number = rate * count
    return "≈ 0" if abs(rate) >= NEGLIGIBLE and abs(number) < LEAST_EVENTS else rounded(number, sign=sign)


def of_thousand(better: float, worse: float) -> tuple[int, int, int]:
    """How many of 1,000 patients are better, as well and worse off, from two shares: they sum to 1,000.

    Shares are rounded by largest remainders.

    Examples
    --------
    >>> of_thousand(0.1494, 0.8506), of_thousand(1 / 3, 1 / 3)
    ((149, 0, 851), (333, 334, 333))
    """
    # Six digits, as the script of a page knows them: a half is rounded the same way everywhere.
    better, worse = (float(f"{share:.6g}") for share in (better, worse))
    shares = [1000 * share for share in (better, max(0.0, 1.0 - better - worse), worse)]
    # What is so near to the next whole number is that number.
    counts = [math.floor(share + 1e-6) for share in shares]
    order = sorted(range(3), key=lambda place: counts[place] - shares[place])
    for place in order[: 1000 - sum(counts)]:
        counts[place] += 1
    return counts[0], counts[1], counts[2]


def worse_of_thousand(better: float, worse: float) -> str:
    """The last of `of_thousand`; – for NaN, and ≈ 0 for less than one that is not none."""
    if math.isnan(better) or math.isnan(worse):
        return "–"
    number = of_thousand(better, worse)[2]
    return f"{number:,}" if number or worse < NEGLIGIBLE else "≈ 0"


def percent(share: float) -> str:
    """A share as a whole percentage, with a space that does not break."""
    return "–" if math.isnan(share) else _minus(f"{round(steady(100 * share))}\u00a0%")


def achieved(kept: float, most: float) -> str:
    r"""What is kept, and after a dash the most that any mechanism can; the latter only where it is proved.

    Examples
    --------
    >>> achieved(0.642, 0.7071), achieved(0.642, float("nan"))
    ('64–71\xa0%', '64\xa0%')
    """
    if math.isnan(kept) or math.isnan(most):
        return percent(kept)
    return f"{percent_down(kept).removesuffix(chr(160) + '%')}–{percent_up(most)}"


def percent_1(share: float) -> str:
    """A share in per cent, to a tenth."""
    # The z: what rounds to nothing has no sign.
    return "–" if math.isnan(share) else _minus(f"{steady(100 * share):z.1f}\u00a0%")


def plain(value: float) -> str:
    """A number that is exact as it stands, such as epsilon: 0.5, 5,000, ∞; – for NaN."""
    if math.isnan(value):
        return "–"
    return ("∞" if value > 0 else "−∞") if math.isinf(value) else _minus(f"{value:,g}")


def beside(value: float, scale: float) -> str:
    """A number with the decimals at which another, of which it is a part, has five digits.

    Examples
    --------
    >>> beside(-0.00025, 102.4936), beside(-102.49385, 102.4936)
    ('0.00', '−102.49')
    """
    places = max(0, 4 - math.floor(math.log10(abs(scale)))) if scale and math.isfinite(scale) else 3
    return _minus(f"{steady(value):z,.{places}f}")


def decimals(half_width: float) -> int:
    """How many decimals show an interval's half width with two digits; 3 where there is none."""
    if not math.isfinite(half_width) or half_width <= NEGLIGIBLE:
        return 3
    return max(0, DIGITS - 1 - math.floor(math.log10(half_width)))


def interval(low: float, high: float, *, sign: bool = False, places: int | None = None) -> str:
    """Both ends of an interval, to two digits of its half width or so many places; – for none, 0 if both are."""
    if math.isnan(low) or math.isnan(high):
        return "–"
    if max(abs(low), abs(high)) < NEGLIGIBLE:
        return "0"
    shown = decimals((high - low) / 2) if places is None else places
    return " to ".join(_signed(end, shown, sign) for end in (low, high))


def estimate(value: float, low: float, high: float, *, sign: bool = False, places: int | None = None) -> str:
    """A number to the digits that its interval supports, or with so many places; – for none."""
    if math.isnan(value):
        return "–"
    if abs(value) < NEGLIGIBLE:
        return "0"
    return _signed(value, decimals((high - low) / 2) if places is None else places, sign)


def _signed(value: float, places: int, sign: bool) -> str:
    """A number with so many places; what is exactly 0 has no sign."""
    plus = "+" if sign and abs(value) >= NEGLIGIBLE else ""
    return _minus(f"{steady(value):{plus}.{places}f}")


def aligned(triples: Sequence[tuple[float, float, float]], *, sign: bool = False) -> list[tuple[str, str]]:
    """Estimates and their intervals that stand below each other: all to two digits of the widest half width.

    Examples
    --------
    >>> aligned([(0.383, 0.3714, 0.3956), (0.3712, 0.3643, 0.378)])
    [('0.383', '0.371 to 0.396'), ('0.371', '0.364 to 0.378')]
    """
    widths = [(high - low) / 2 for _, low, high in triples]
    places = min((decimals(width) for width in widths if width > NEGLIGIBLE), default=None)
    return [
        (estimate(*each, sign=sign, places=places), interval(*each[1:], sign=sign, places=places)) for each in triples
    ]


def with_interval(value: float, low: float, high: float, *, sign: bool = False) -> str:
    """An estimate with its interval, in words; what never differs has none."""
    if max(abs(value), abs(low), abs(high)) < NEGLIGIBLE:
        return "exactly 0"
    return f"{estimate(value, low, high, sign=sign)} (95\u00a0% interval {interval(low, high, sign=sign)})"


def several(number: int, noun: str) -> str:
    """1 number, 1,200 numbers."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def days(number: int) -> str:
    """1 day, 2 days."""
    return several(number, "day")


def sensitivity(value: float) -> str:
    """A sensitivity or range, or a part of it: three digits, so that it agrees with its parts in per cent."""
    return rounded(value, digits=SENSITIVITY_DIGITS)


def population(rates: Iterable[float]) -> int:
    """The number of patients to count events among: 100,000, or the power of ten at which the rates show two digits."""
    largest = max((abs(rate) for rate in rates if math.isfinite(rate)), default=0.0)
    count = 100_000
    # Beyond one in ten million, differences are rounding and not patients.
    while 0 < largest * count < 10 and count < MOST_COUNTED:
        count *= 10
    return count


def guesses(loss: float) -> float:
    """e^loss / (1 + e^loss): no mechanism of this loss lets a guess between two equally likely neighbours do better."""
    return 1 / (1 + math.exp(-loss))


def of_100(share: float) -> str:
    """How many of 100 guesses are right at most, to a tenth and never below it but for rounding: 50, 73.2, 100."""
    return f"{_cut(_shortest(steady(100 * share)), 1):f}".removesuffix(".0")


def below_100(share: float) -> str:
    """As `of_100`, with the digits, at most four after the point, at which what is below 100 is written below it.

    Examples
    --------
    >>> below_100(0.9521), below_100(0.99918)
    ('95.3', '99.92')
    """
    cuts = (_cut(Decimal(100 * share), places) for places in range(1, 5))
    return next((f"{cut:f}" for cut in cuts if cut < 100), "100").removesuffix(".0")


def guess_rate(rate: float) -> str:
    """A guess rate as so many of 100, to a tenth: rounded up, but not for what rounding leaves; – for NaN.

    Examples
    --------
    >>> guess_rate(0.5 + 1e-16), guess_rate(0.654 + 1e-15), guess_rate(0.6541)
    ('50', '65.4', '65.5')
    """
    return "–" if math.isnan(rate) else of_100(rate)


def policy_odds(policy: str, epsilon: float, guarantee: float, *, uses_epsilon: bool) -> str:
    """What a policy's own guarantee means to somebody who guesses; one that takes no epsilon keeps none."""
    if uses_epsilon:
        return odds(epsilon, guesses(guarantee))
    if guarantee == math.inf:
        return f"{policy} hides nothing: the published treatment may tell two such patients apart every time."
    return (
        f"{policy} learns nothing about the patient: whoever sees the published treatment and must guess which of two "
        f"such patients it was given to is right {100 * guesses(guarantee):.0f} of 100 times, as when guessing blind."
    )


# What epsilon means to somebody who guesses; so many of 100 are right.
ODDS = (
    "At ε = {epsilon}, whoever sees the published treatment and must guess which of two such patients, equally likely "
    "before, it was given to is right at most {right} of 100 times; guessing blind, 50. This is the bound "
    "e^ε/(1 + e^ε), rounded up, of every mechanism with this ε; its own guess rate may be lower."
)


def odds(epsilon: float, right_guesses: float) -> str:
    """What epsilon means to somebody who guesses: a bound for every mechanism with this epsilon."""
    return ODDS.format(epsilon=plain(epsilon), right=of_100(right_guesses))


def in_a_row(names: Sequence[str], last: str) -> str:
    """Names after commas, and a word before the last.

    Examples
    --------
    >>> in_a_row(["age", "sex", "asthma"], "and")
    'age, sex and asthma'
    """
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def unused(features: Iterable[str]) -> str:
    """Of hidden features that tell no treatments apart: that nothing is said about their price."""
    names = [name.replace("_", " ") for name in features]
    it = "it" if len(names) == 1 else "them"
    return (
        f"The model does not use {in_a_row(names, 'or')} to tell treatments apart, so nothing can be said about what "
        f"hiding {it} costs."
    )


def level_name(group: str, level: str) -> str:
    """A group of patients in words; without a level, the group is one that the scenario has words for."""
    name = group.replace("_", " ")
    if not level:
        return group
    return {"0": f"not {name}", "1": name}.get(level, f"{name} {level}") if group != "sex" else f"sex {level}"


def group_name(group: str, level: str) -> str:
    """A group of patients in words, everyone too."""
    return "everyone" if group == "all" else level_name(group, level)


def _minus(text: str) -> str:
    return text.replace("-", "−")


def attains(kept: float, most: float) -> bool:
    """Whether a policy keeps the most that any can; False where it is not proven (NaN) what that is."""
    return kept >= most - TIGHT


@dataclass(frozen=True)
class Group:
    """One group of patients: a level of a feature, or everyone.

    Attributes
    ----------
    feature, level : str
        Both "all" for everyone.
    share : float
        Its probability under the prior.
    """

    feature: str
    level: str
    share: float
