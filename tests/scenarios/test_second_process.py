"""A capture that two processes follow says what it says to one."""

import gzip

import pytest

from tests.scenarios.engines import Scenario, packets
from wirecheck.session import local_check, second_process
from wirecheck.session.second_process import SecondProcess, SecondProcessEnded, is_worth_it
from wirecheck.session.session import Session

CAPTURES = ["kip516-draft-contradiction", "two-clusters-one-wire", "zk28-lossy-network"]


@pytest.fixture
def scenario(request):
    return Scenario(request.param)


def alone(scenario):
    return local_check.checked_captures(Session(), [scenario.pcap], "default", scenario.settings)


def by_two(scenario):
    return local_check.checked_by_two(Session(), [scenario.pcap], "default", scenario.settings)


@pytest.mark.parametrize("scenario", CAPTURES, indirect=True)
def test_two_processes_find_what_one_finds(scenario, monkeypatch):
    """In pieces so small that the second process is behind, and ends after the first one has read all."""
    monkeypatch.setattr(local_check, "BATCH_BYTES", 100_000)
    one, two = alone(scenario), by_two(scenario)
    assert two.run.result().json() == one.run.result().json()
    assert (two.captured, two.ports, two.run.messages) == (one.captured, one.ports, one.run.messages)
    assert one.run.messages > 0


@pytest.mark.parametrize("scenario", CAPTURES[:1], indirect=True)
@pytest.mark.parametrize("steps", [0, 1])
def test_if_the_second_process_ends_one_reads_all_again(scenario, steps, monkeypatch):
    """As the kernel ends it where memory is short."""
    steps_of = SecondProcess.steps

    def killed(self):
        for number, step in enumerate(steps_of(self)):
            if number == steps:
                self._process.kill()
                raise SecondProcessEnded
            yield step

    monkeypatch.setattr(SecondProcess, "steps", killed)
    monkeypatch.setattr(local_check, "is_worth_it", lambda *_: True)
    monkeypatch.setattr(local_check, "BATCH_BYTES", 100_000)
    with pytest.raises(SecondProcessEnded):
        by_two(scenario)
    after = alone(scenario)
    monkeypatch.setattr(local_check, "is_worth_it", lambda *_: False)
    assert after.run.result().json() == alone(scenario).run.result().json()


@pytest.mark.parametrize("scenario", CAPTURES[2:], indirect=True)
def test_a_file_that_grows_between_both_is_read_to_its_end(scenario, monkeypatch, tmp_path):
    """As tcpdump writes on: the second process sees the first half of it."""
    whole, half = tmp_path / "whole.pcap", tmp_path / "half.pcap"
    whole.write_bytes(gzip.decompress(scenario.pcap.read_bytes()))
    pieces = packets(scenario)
    half.write_bytes(b"".join(pieces[: len(pieces) // 2]))
    monkeypatch.setattr(local_check, "BATCH_BYTES", 100_000)
    monkeypatch.setattr(local_check, "Work", lambda _captures, *rest: second_process.Work([half], *rest))
    two = local_check.checked_by_two(Session(), [whole], "default", scenario.settings)
    assert two.captured == alone(scenario).captured
    assert 0 < two.run.messages < alone(scenario).run.messages


@pytest.mark.parametrize("scenario", CAPTURES[:1], indirect=True)
@pytest.mark.parametrize("python", ["/bin/true", "/bin/no-such-python"])
def test_a_process_that_ends_by_itself_or_never_begins_is_noticed(scenario, python, monkeypatch):
    monkeypatch.setattr(second_process.sys, "executable", python)
    with pytest.raises(SecondProcessEnded):
        by_two(scenario)


@pytest.mark.parametrize("scenario", CAPTURES[:1], indirect=True)
def test_a_second_process_is_for_many_messages_and_two_processors(scenario, monkeypatch):
    about = ([scenario.pcap], "default", 100_000, scenario.settings)
    monkeypatch.setattr(second_process, "processors", lambda: 2)
    assert not is_worth_it(*about)
    monkeypatch.setattr(second_process, "LEAST_BYTES", 0)
    messages = second_process.expected_messages(*about)
    assert messages == pytest.approx(alone(scenario).run.messages, rel=0.5)
    monkeypatch.setattr(second_process, "LEAST_MESSAGES", messages)
    assert is_worth_it(*about)
    monkeypatch.setattr(second_process, "processors", lambda: 1)
    assert not is_worth_it(*about)
