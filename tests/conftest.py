"""Random tests draw the same examples in every run, whichever worker runs them and whatever ran there before."""

from hypothesis import settings
from hypothesis.internal.conjecture import providers

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")
# Hypothesis also draws numbers that stand in the modules imported so far, which depend on the tests that ran before.
providers.is_local_module_file = lambda _: False
