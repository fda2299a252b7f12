"""A progress that remembers what it was told."""

from threading import Lock

from policysim.progress import Progress


class CountedProgress(Progress):
    """How many steps were expected, and how many done."""

    def __init__(self):
        self.expected = self.done = 0
        self._lock = Lock()  # several threads may be done with a step at the same time
        super().__init__(self._did, self._expects)

    def _expects(self, steps):
        with self._lock:
            self.expected += steps

    def _did(self, steps):
        with self._lock:
            self.done += steps
        assert self.done <= self.expected, "done before it was expected"
