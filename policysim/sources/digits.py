"""Whether a number of ours is the one that somebody printed."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal, InvalidOperation


def printed_number(text: str) -> Decimal | None:
    """A printed number with its digits, or None for something else: 0.327, .32, 8.9e-6, 45,222."""
    try:
        number = Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def rounds_to(value: float, printed: str) -> bool:
    """Whether the value, rounded to the digits of the printed number, is that number.

    Examples
    --------
    >>> rounds_to(0.09975049, "0.0998"), rounds_to(8.92e-6, "8.9e-6"), rounds_to(0.327, ".32")
    (True, True, False)
    """
    return _at_digits(value, printed, ROUND_HALF_EVEN)


def cut_to(value: float, printed: str) -> bool:
    """Whether the value is the printed number if the digits that follow are cut off.

    Examples
    --------
    >>> cut_to(0.327, ".32"), cut_to(0.327, ".33")
    (True, False)
    """
    return _at_digits(value, printed, ROUND_DOWN)


def as_printed(value: float, printed: str) -> str:
    """The value, rounded to the digits of the printed number.

    Examples
    --------
    >>> as_printed(0.14696, ".15"), as_printed(3.99e-5, "4e-5")
    ('0.15', '4e-5')
    """
    step = Decimal(1).scaleb(_exponent(printed))
    rounded = Decimal(value).quantize(step, ROUND_HALF_EVEN)
    return f"{rounded:e}" if "e" in printed.lower() else f"{rounded:,f}" if "," in printed else f"{rounded:f}"


def _at_digits(value: float, printed: str, rounding: str) -> bool:
    number = printed_number(printed)
    if number is None:
        return False
    return Decimal(value).quantize(Decimal(1).scaleb(_exponent(printed)), rounding) == number


def _exponent(printed: str) -> int:
    number = printed_number(printed)
    exponent = number.as_tuple().exponent if number is not None else 0
    return exponent if isinstance(exponent, int) else 0
