"""Key logs that are written while somebody looks: every way a file can change, and no line of it twice or half."""

import os

import pytest

from wirecheck.capture.tls import key_log
from wirecheck.capture.tls.key_log import GrowingKeyLogs, Secrets

MASTER = "ef" * 48


def line(number):
    return f"CLIENT_RANDOM {number:064x} {MASTER}\n"


class Looking:
    def __init__(self, path):
        self.path, self.secrets, self.said = path, Secrets(), []
        self.logs = GrowingKeyLogs([path], self.secrets, self.said.append)

    def after(self, text="", mode="a"):
        """What is known once this was written."""
        with self.path.open(mode) as file:
            file.write(text)
        return self.known()

    def known(self):
        self.logs.look()
        return [int.from_bytes(random, "big") for random in self.secrets.by_random]


@pytest.fixture
def looking(tmp_path):
    looking = Looking(tmp_path / "keys.log")
    yield looking
    looking.logs.close()


def test_what_is_new_is_read_and_half_a_line_waits_for_its_rest(looking):
    assert looking.after(line(1)) == [1]
    assert looking.after(line(2)[:50]) == [1]
    assert looking.after(line(2)[50:] + line(3)) == [1, 2, 3]
    assert (looking.secrets.lines, looking.secrets.strange, looking.said) == (3, 0, [])


def test_one_that_appears_later_is_said_and_read(looking):
    for _ in range(3):
        assert looking.known() == []
    assert looking.after(line(1)) == [1]
    assert looking.said == [
        f"{looking.path}: no such file or directory; trying again, its connections stay encrypted until then",
        f"{looking.path}: is readable again",
    ]


@pytest.mark.parametrize("text", [line(7), line(7) + line(8), line(7) + line(8) + line(9) * 5])
def test_one_that_is_truncated_is_read_from_its_beginning(looking, text):
    """Shorter than what was read, as long, and longer."""
    assert looking.after(line(1) + line(2)) == [1, 2]
    assert looking.after(text, "w")[:3] == [1, 2, 7]
    assert looking.secrets.strange == 0


def test_one_that_is_rotated_away_is_read_to_its_end_and_then_the_new_one(looking):
    looking.after(line(1))
    with looking.path.open("a") as old:
        looking.path.rename(looking.path.with_suffix(".1"))
        assert looking.known() == [1]
        old.write(line(2))
        old.flush()
        assert looking.known() == [1, 2]  # who writes does not know yet
        old.write(line(3))
    assert looking.after(line(4)) == [1, 2, 3, 4]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_said_and_not_waited_for(looking, make):
    make(looking.path)
    assert looking.known() == []
    assert looking.said[0].startswith(f"{looking.path}: is not a regular file")
    assert looking.logs.unreadable == 1


def test_one_that_may_not_be_read_is_said_once_and_read_when_it_may(looking, monkeypatch):
    looking.path.write_text(line(1))
    real = os.open

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    assert [looking.known() for _ in range(3)] == [[], [], []]
    monkeypatch.setattr(os, "open", real)
    assert looking.known() == [1]
    assert looking.said == [
        f"{looking.path}: permission denied; trying again, its connections stay encrypted until then",
        f"{looking.path}: is readable again",
    ]


def test_one_look_reads_so_much_and_the_next_goes_on(looking, monkeypatch):
    monkeypatch.setattr(key_log, "MOST_BYTES", 1000)
    monkeypatch.setattr(key_log, "READ_BYTES", 500)
    looking.path.write_text("".join(map(line, range(20))))
    assert len(looking.known()) == 1000 // len(line(0))
    assert [len(looking.known()) for _ in range(4)][-1] == 20


def test_nothing_that_is_printed_of_secrets_is_one(looking):
    looking.after(line(1))
    assert "efef" not in repr(looking.secrets) + repr(looking.logs) + str(looking.secrets)
