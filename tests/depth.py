"""How much a run of the tests tries: HYPOTHESIS_PROFILE=deep tries all."""

from hypothesis import settings

DEEP = settings.get_current_profile_name() == "deep"


def some(cases, each=3):
    """One in `each` of the cases; all of them in the deep profile."""
    return cases if DEEP else cases[::each]
