"""A server is taken for the release whose versions it advertises, as it does without unstable versions."""

import pytest

from wirecheck.decode import schemas
from wirecheck.decode.releases import estimate, lines_of, written


def advertised(release, listener, *, unstable=False):
    """What a listener of a release advertises: of a ZooKeeper broker (Z), a broker (B) or a controller (C)."""
    ranges = {
        key: (one.low, one.high - (one.latest_unstable and not unstable))
        for key, one in schemas.releases()[release].items()
        if listener in one.listeners
    }
    return written({key: (low, high) for key, (low, high) in ranges.items() if high >= low})


@pytest.mark.parametrize("listener", ["Z", "B", "C"])
@pytest.mark.parametrize("release", schemas.releases())
def test_what_a_release_advertises_is_its_own(release, listener):
    text = advertised(release, listener)
    assert not text or release.rpartition(".")[0] in lines_of(text)


def test_a_stable_release_comes_before_an_unstable_one_that_advertises_the_same():
    assert estimate(advertised("3.6.2", "Z")) == "3.6"
    assert estimate(advertised("3.5.2", "Z")) == "3.5"
