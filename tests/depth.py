"""How much a run of the tests tries: HYPOTHESIS_PROFILE=deep tries all."""

from hypothesis import settings

DEEP = settings.get_current_profile_name() == "deep"


def some(cases, each=3):
    """One in `each` of the cases; all of them in the deep profile."""
    return cases if DEEP else cases[::each]


def examples(number, *, deep=2000):
    """So many of a law whose examples cost much: each is a capture that is written, read and judged."""
    return settings(max_examples=deep if DEEP else number)
