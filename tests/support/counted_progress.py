"""A progress that remembers what it was told."""

from policysim.question.protocol import Progress


class CountedProgress(Progress):
    """How many steps were expected, and how many done."""

    def __init__(self):
        self.expected = self.done = 0
        super().__init__(self._did, self._expects)

    def _expects(self, steps):
        self.expected += steps

    def _did(self, steps):
        self.done += steps
        assert self.done <= self.expected, "done before it was expected"
