"""How work tells how much of it there is, and how much is done."""

from __future__ import annotations

from collections.abc import Callable


def _nothing(steps: int) -> object:
    return steps


class Progress:
    """Told by whoever works: first what to expect, then every step.

    Work knows its own size only: it calls `expect` before it begins and `advance` on the way, so that nobody has to
    count the steps of somebody else's work beforehand. A step is whatever takes about as long as others of its kind.

    Parameters
    ----------
    on_advance : callable, optional
        Called with the number of steps that are done; by default nobody listens.
    on_expect : callable, optional
        Called with the number of steps that will be done in addition to all that were expected before.

    Examples
    --------
    >>> progress = Progress(on_advance=print)
    >>> progress.expect(2)
    >>> progress.advance()
    1
    """

    def __init__(
        self, on_advance: Callable[[int], object] = _nothing, on_expect: Callable[[int], object] = _nothing
    ) -> None:
        self._on_advance, self._on_expect = on_advance, on_expect

    @classmethod
    def of(cls, advance: Callable[[], object] | Progress) -> Progress:
        """A progress as it is; a function that is called without arguments after each step."""
        return advance if isinstance(advance, Progress) else cls(lambda steps: [advance() for _ in range(steps)])

    def expect(self, steps: int) -> None:
        """So many steps more will be done."""
        self._on_expect(steps)

    def advance(self, steps: int = 1) -> None:
        """So many steps are done."""
        self._on_advance(steps)


SILENT = Progress()
