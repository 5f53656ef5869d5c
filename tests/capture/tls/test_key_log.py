"""Key logs: every line of every writer, and whatever else is in such a file."""

import random

import pytest

from wirecheck.capture.tls import key_log
from wirecheck.capture.tls.key_log import KeyLog, KeyLogError, Secrets

RANDOM, SECRET, MASTER = "ab" * 32, "cd" * 32, "ef" * 48


def read(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    secrets = Secrets()
    log = KeyLog(path, secrets)
    log.read()
    return secrets, log.fault


def test_lines_of_both_versions_are_kept_by_the_clients_random(tmp_path):
    text = (
        f"# SSL/TLS secrets log file\n\nCLIENT_RANDOM {RANDOM} {MASTER}\nCLIENT_TRAFFIC_SECRET_0 {RANDOM} {SECRET}\r\n"
    )
    secrets, fault = read(tmp_path / "k", text)
    assert secrets.of(bytes.fromhex(RANDOM)) == {
        "CLIENT_RANDOM": bytes.fromhex(MASTER),
        "CLIENT_TRAFFIC_SECRET_0": bytes.fromhex(SECRET),
    }
    assert fault == ""


def test_sessions_have_their_masters_by_id(tmp_path):
    secrets, _ = read(tmp_path / "k", f"RSA Session-ID:{'12' * 32} Master-Key:{MASTER}\nRSA {'0' * 16} {MASTER}\n")
    assert (secrets.masters, secrets.strange) == ({bytes.fromhex("12" * 32): bytes.fromhex(MASTER)}, 0)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "holds no secret"),
        ("# nothing yet\n", "holds no secret"),
        (b"\x00\xff" * 5000, "no line has the format of a key log"),
        (
            f"CLIENT_RANDOM {RANDOM} {MASTER}\nCLIENT_RANDOM {RANDOM[:40]}",
            "1 of its lines are truncated, not in the format of a key log, or contradict an earlier line",
        ),
        (
            f"CLIENT_RANDOM {RANDOM} {MASTER}\n{'x' * 3_000_000}\n",
            "1 of its lines are truncated, not in the format of a key log, or contradict an earlier line",
        ),
    ],
)
def test_what_is_wrong_with_a_key_log_is_one_line_without_its_content(tmp_path, text, fault):
    assert read(tmp_path / "k", text)[1] == fault


def test_a_secret_stays_when_a_later_line_or_capture_contradicts_it(tmp_path):
    session = f"RSA Session-ID:{'12' * 32} Master-Key:"
    secrets, _ = read(tmp_path / "k", f"CLIENT_TRAFFIC_SECRET_0 {RANDOM} {SECRET}\n{session}{MASTER}\n")
    secrets.read_block(f"CLIENT_TRAFFIC_SECRET_0 {RANDOM} {'00' * 32}\n{session}{'00' * 48}\n".encode())
    assert secrets.of(bytes.fromhex(RANDOM)) == {"CLIENT_TRAFFIC_SECRET_0": bytes.fromhex(SECRET)}
    assert secrets.masters == {bytes.fromhex("12" * 32): bytes.fromhex(MASTER)}
    assert secrets.strange == 2
    secrets.read_block(f"CLIENT_TRAFFIC_SECRET_0 {RANDOM} {SECRET}\n".encode())
    assert secrets.strange == 2


def test_a_key_log_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(KeyLogError, match="no such file"):
        KeyLog(tmp_path / "none", Secrets()).read()


def test_too_many_secrets_make_room_for_the_newest(tmp_path, monkeypatch):
    monkeypatch.setattr(key_log, "MOST_CONNECTIONS", 100)
    secrets, fault = read(tmp_path / "k", "".join(f"CLIENT_RANDOM {i:064x} {MASTER}\n" for i in range(150)))
    assert (len(secrets.by_random), secrets.forgotten) == (100, 50)
    assert (149).to_bytes(32, "big") in secrets.by_random
    assert fault.startswith("secrets of 50 connections exceed the limit")


def test_any_garbage_is_read_to_its_end(tmp_path):
    rng = random.Random(7)
    good = f"CLIENT_RANDOM {RANDOM} {MASTER}\n".encode()
    for _ in range(200):
        data = bytearray(good * 20)
        for _ in range(rng.randint(1, 60)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        secrets, _ = read(tmp_path / "k", bytes(data))
        assert secrets.lines + secrets.strange >= 1
