"""How work reports its progress: how many steps there are, and each step that is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Progress:
    """Counts steps: first how many to expect, then each.

    Work knows its own size only: it calls `expect` before it begins and `advance` on the way, so that nobody has to
    count the steps of somebody else's work beforehand. A step is whatever takes about as long as others of its kind.

    Attributes
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

    on_advance: Callable[[int], object] | None = None
    on_expect: Callable[[int], object] | None = None

    @classmethod
    def of(cls, advance: Callable[[], object] | Progress) -> Progress:
        """A progress as it is; a function that is called without arguments after each step."""
        return advance if isinstance(advance, Progress) else cls(lambda steps: [advance() for _ in range(steps)])

    def expect(self, steps: int) -> None:
        """So many steps more will be done."""
        if self.on_expect:
            self.on_expect(steps)

    def advance(self, steps: int = 1) -> None:
        """So many steps are done."""
        if self.on_advance:
            self.on_advance(steps)


SILENT = Progress()
