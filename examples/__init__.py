"""Scripts that use policysim: run them from the root of the repository, such as `python examples/private_ppo.py`."""
