"""What rings share: one Spark session per run, started when the first test asks for it."""

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from streaming.session import Session, close_session, open_session

    session = open_session(Session(tmp_path_factory.mktemp("spark")))
    yield session
    close_session()
