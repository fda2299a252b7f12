"""Random numbers by counting: the known answers of their authors, and what is made of them."""

import numpy as np
import pytest
from scipy.stats import chi2

from envs import philox

# Key and counter (place, low word of the time, block, high word of the time), and four words: the test vectors of
# Random123, the authors' library.
KNOWN = [
    ((0, 0), (0, 0, 0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ((2**32 - 1,) * 2, (2**32 - 1,) * 4, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        (0xA4093822, 0x299F31D0),
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


@pytest.mark.parametrize(("key", "counter", "wanted"), KNOWN)
def test_the_words_are_those_of_the_authors(key, counter, wanted):
    place, low, block, high = counter
    times = np.array([low + (high << 32)], dtype=np.uint64)
    found = philox.words(key, np.array([place]), times, block, 1)[:, 0]
    assert " ".join(f"{word:08x}" for word in found) == wanted


def test_no_two_counters_share_their_words():
    places, times = np.meshgrid(np.arange(300), np.concatenate([np.arange(40), 2**32 + np.arange(5)]))
    words = philox.words((3, 4), places.ravel(), times.ravel(), 0, 4).reshape(4, 4, -1)
    blocks = words.transpose(0, 2, 1).reshape(-1, 4)
    assert len(np.unique(blocks, axis=0)) == len(blocks)


def test_numbers_do_not_depend_on_who_else_is_asked_for():
    everyone = philox.days((1, 2), np.arange(3 * philox.PLACES_AT_ONCE), 7, 9)
    some = np.array([5, 20_000, 17])
    assert np.array_equal(philox.days((1, 2), some, 7, 9), everyone[:, some])


@pytest.mark.parametrize("kind", ["days", "arrivals"])
def test_numbers_are_uniform_and_those_of_places_times_and_keys_independent(kind):
    def numbers(key, time):
        places = np.arange(40_000)
        return philox.arrivals(key, places, time) if kind == "arrivals" else philox.days(key, places, time, 9)[8]

    first, pairs = numbers((1, 2), 5), {}
    pairs["the next place"] = np.roll(first, 1)
    for name, key, time in (("the next time", (1, 2), 6), ("key", (2, 2), 5), ("other key", (1, 3), 5)):
        pairs[name] = numbers(key, time)
    for other in pairs.values():
        counts = np.histogram2d(first, other, bins=20, range=[[0, 1], [0, 1]])[0].ravel()
        statistic = ((counts - 100) ** 2 / 100).sum()
        # Beyond it by chance once in a million, and the numbers are fixed.
        assert statistic <= chi2.ppf(1 - 1e-6, 399)


def test_a_place_that_is_read_as_a_time_would_be_noticed():
    places, times = np.meshgrid(np.arange(30), np.arange(30))
    mixed = philox.words((3, 4), (places + times).ravel(), np.zeros(900, dtype=int), 0, 1).T
    assert len(np.unique(mixed, axis=0)) < len(mixed)


def test_probabilities_of_0_and_1_are_met_exactly():
    uniforms = philox.days((1, 2), np.arange(100_000), 0, 2)
    assert (uniforms > 0).all()
    assert (uniforms < 1).all()
    # The middles of equal intervals.
    assert np.array_equal(uniforms * 2**33 % 2, np.ones_like(uniforms))


def test_the_key_is_taken_from_a_new_generator_only():
    counter, rng = philox.Counter(), np.random.default_rng(0)
    counter.tick(rng)
    key = counter.key
    for time in range(3):
        assert (counter.key, counter.time) == (key, time)
        counter.tick(rng)
    counter.tick(np.random.default_rng(1))
    assert counter.key != key
    assert counter.time == 0
