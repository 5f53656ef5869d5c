"""What rings share: one Spark session, started when the first test asks for it, and hypothesis' profiles.

`quick` is what `make test` runs: the same examples every time, however busy the machine. `deep` searches further:
HYPOTHESIS_PROFILE=deep make laws. `plain` looks at fewer, where nothing was compiled. `mutated` is `quick` without the
search for a small example (tools/mutations.py).
"""

import gc
import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, Phase, settings

from wirecheck import extension_modules

settings.register_profile(
    "quick", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("deep", settings.get_profile("quick"), derandomize=False, max_examples=2000)
settings.register_profile("plain", settings.get_profile("quick"), max_examples=30)
settings.register_profile("mutated", settings.get_profile("quick"), phases=[Phase.explicit, Phase.generate])
ONLY_PLAIN = not extension_modules.compiled_folders()
os.environ.setdefault("WIRECHECK_ENGINE_STRICT", "1")  # where Spark fails, no other engine answers for it
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("plain" if ONLY_PLAIN else "quick"))
if settings.get_current_profile_name() != "deep":  # to write it costs more than a run of the tests saves by it
    os.environ.setdefault("WIRECHECK_CLASS_ARCHIVE", "off")


def pytest_configure():
    """A job in a shell's background ignores Ctrl-C, and so would the processes that tests start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def uses_spark(item):
    return item.get_closest_marker("spark") is not None or "spark" in getattr(item, "fixturenames", ())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Tests that use Spark come first: what they left behind would be seen by all others."""
    items.sort(key=uses_spark, reverse=True)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Java goes with the last of them: while it waits, it looks for garbage every ten seconds."""
    if uses_spark(item) and not (nextitem and uses_spark(nextitem)):
        close_spark()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Modules and thousands of tests stay until the end: looking through them took a quarter of collecting them, and
    4 % of a run.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def close_spark():
    if (session := sys.modules.get("wirecheck.streaming.spark.session")) is not None:
        session.close_session()


@pytest.fixture(scope="session")
def spark_folder(tmp_path_factory):
    yield tmp_path_factory.mktemp("spark")
    close_spark()


@pytest.fixture
def spark(spark_folder):
    """The process has one Spark, and a command that a test runs in this process ends it: then it is opened anew."""
    from wirecheck.streaming.spark.session import open_session
    from wirecheck.streaming.spark.tuning import Session

    return open_session(Session(spark_folder))


@pytest.fixture(autouse=True)
def nothing_was_contained():
    """A test fails if a judge contained an exception in it, other than those that tests/judge/lab.py plants."""
    from bench.contained import nothing_contained

    with nothing_contained(planted=" in lab.py:"):
        yield


@pytest.fixture(autouse=True)
def nobody_leaves_a_spark_behind(spark_folder):
    """One that a command left would serve the next test, from a folder that is gone."""
    yield
    if (session := sys.modules.get("wirecheck.streaming.spark.session")) is not None:
        assert session.RUNNING.work in (None, spark_folder)
