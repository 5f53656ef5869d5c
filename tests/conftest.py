"""What rings share: one Spark session per run, started when the first test asks for it, and hypothesis' two profiles.

`quick` is what `make test` runs: the same examples every time, however busy the machine. `deep` searches further:
HYPOTHESIS_PROFILE=deep make laws.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "quick", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("deep", settings.get_profile("quick"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from streaming.session import Session, close_session, open_session

    session = open_session(Session(tmp_path_factory.mktemp("spark")))
    yield session
    close_session()
