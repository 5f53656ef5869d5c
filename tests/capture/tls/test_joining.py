"""Numbers that a record can have, without its tag; and how often may be tried."""

import pytest

from tests.capture.tls.sealed import record
from wirecheck.capture.tls.cipher_suites import TLS_1_3
from wirecheck.capture.tls.joining import LIVE, OFFLINE, Budget, Joining, generations
from wirecheck.capture.tls.key_log import MOST_UPDATED, TRAFFIC, UPDATED, Secrets
from wirecheck.capture.tls.record_keys import NONCE_BYTES, Tls13Key

S = 1_000_000_000
AES_128, AES_256, CHACHA = 0x1301, 0x1302, 0x1303


def key(suite):
    return Tls13Key(TLS_1_3[suite], bytes(range(TLS_1_3[suite].prf_bytes)))


def fragment(made, number, content, kind=23, padding=0):
    inner = content + bytes([kind]) + bytes(padding)
    return made._aead.encrypt((made._iv ^ number).to_bytes(NONCE_BYTES, "big"), inner, b"")


@pytest.mark.parametrize("suite", [AES_128, AES_256])
@pytest.mark.parametrize(("kind", "padding"), [(23, 0), (22, 0), (23, 1), (23, 40)])
@pytest.mark.parametrize("size", [0, 14, 15, 16, 17, 31, 32, 5_000])
def test_a_record_s_own_number_is_among_few(suite, kind, padding, size):
    made = key(suite)
    for number in (0, 255, 256, 40_001):
        found = made.likely(0, 1 << 16, fragment(made, number, bytes(size), kind, padding))
        assert number in found
        assert len(found) < 0.03 * (1 << 16)


def test_a_part_of_the_numbers_is_looked_at_alone():
    made = key(AES_128)
    sealed = fragment(made, 300, b"body")
    assert 300 in made.likely(256, 512, sealed)
    assert all(256 <= number < 512 for number in made.likely(256, 512, sealed))
    assert 300 not in made.likely(0, 256, sealed)


def test_of_another_cipher_and_of_what_is_too_short_every_number_may_be():
    made = key(CHACHA)
    assert list(made.likely(3, 9, fragment(made, 5, b"body"))) == [3, 4, 5, 6, 7, 8]
    assert list(key(AES_128).likely(0, 4, bytes(16))) == [0, 1, 2, 3]


@pytest.mark.parametrize("tries", [LIVE, OFFLINE])
def test_what_was_not_tried_may_be_tried_later_up_to_a_bound(tries):
    a_second, most = tries
    budget = Budget(tries)
    budget.earn(1 * S)
    budget.spend(most)
    assert not budget.is_left
    budget.earn(2 * S)
    budget.spend(a_second - 1)
    assert budget.is_left
    budget.earn(1000 * S)
    budget.spend(most)
    assert not budget.is_left


def test_an_agent_that_listens_tries_for_no_longer_than_its_ring_waits():
    assert LIVE[1] * 10e-6 < 0.5


def joining(suite, updates, numbers, *, others=3):
    """Two sides of a connection that is joined behind so many KeyUpdates of each, at these record numbers."""
    secrets, size = Secrets(), TLS_1_3[suite].prf_bytes
    labels = {label: bytes([place]) * size for place, label in enumerate(TRAFFIC, 1)}
    for random in range(others):
        secrets.by_random[bytes([random]) * 32] = {label: bytes([40 + random]) * size for label in TRAFFIC}
    secrets.by_random[b"m" * 32] = labels
    budget = Budget()
    budget.earn(1 * S)
    made = Joining(secrets, budget)
    for side, (label, count, number) in enumerate(zip(TRAFFIC, updates, numbers, strict=True)):
        own = generations(Tls13Key(TLS_1_3[suite], labels[label]))[count]
        made.see(side, b"".join(record(own, number + n, b"some message") for n in range(3)))
    return made


@pytest.mark.parametrize("suite", [AES_128, AES_256, CHACHA])
@pytest.mark.parametrize("updates", [(0, 0), (1, 1), (1, 0), (3, 2), (8, 8)])
def test_a_connection_is_joined_behind_key_updates(suite, updates):
    made = joining(suite, updates, (40, 7))
    trial = made.find()
    assert trial is not None
    assert (trial.updates, trial.number, trial.random) == (updates[trial.side], (40, 7)[trial.side], b"m" * 32)
    key_of_other, number, _ = made.other(trial)
    side = 1 - trial.side
    assert number == (40, 7)[side]
    assert key_of_other.open(number, *made._records[side]) is not None


@pytest.mark.parametrize(("logged_from", "updates"), [(1, 12), (1, 40), (5, 12), (1, 8)])
def test_a_connection_is_joined_behind_key_updates_that_are_logged(logged_from, updates):
    """OpenSSL writes a line for each; the capture begins behind more than are derived, or behind the last line."""
    labels = dict(zip(TRAFFIC, (bytes([1]) * 32, bytes([2]) * 32), strict=True))
    chain = [Tls13Key(TLS_1_3[AES_128], labels[TRAFFIC[0]])]
    while len(chain) <= updates:
        chain.append(chain[-1].next())
    lines = [f"{label} {b'm'.hex() * 32} {secret.hex()}" for label, secret in labels.items()]
    lines += [f"{UPDATED[0]} {b'm'.hex() * 32} {one.secret.hex()}" for one in chain[logged_from : updates - 2]]
    secrets, budget = Secrets(), Budget()
    secrets.read("\n".join(lines).encode())
    secrets.read("\n".join(lines).encode())  # a file that was read again adds nothing
    budget.earn(1 * S)
    made = Joining(secrets, budget)
    made.see(0, b"".join(record(chain[updates], 7 + n, b"some message") for n in range(3)))
    trial = made.find()
    assert (trial.updates, trial.number) == (updates, 7)


def test_of_key_updates_that_are_logged_the_newest_are_kept():
    secrets = Secrets()
    head = b"m".hex() * 32
    secrets.read(f"{UPDATED[0]} {head} {'00' * 32}".encode())  # of a connection of which nothing else is known
    secrets.read(f"{TRAFFIC[0]} {head} {'11' * 32}".encode())
    for number in range(MOST_UPDATED + 3):
        secrets.read(f"{UPDATED[0]} {head} {bytes([number]).hex() * 32}".encode())
    (kept,) = secrets.updated.values()
    assert [one[0] for one in kept] == list(range(3, MOST_UPDATED + 3))


def test_behind_more_key_updates_than_are_tried_nothing_is_found():
    labels = [bytes([place]) * 32 for place in (1, 2)]
    last = generations(Tls13Key(TLS_1_3[AES_128], labels[0]))[-1].next()
    secrets = Secrets()
    secrets.by_random[b"m" * 32] = dict(zip(TRAFFIC, labels, strict=True))
    budget = Budget()
    budget.earn(1 * S)
    made = Joining(secrets, budget)
    made.see(0, b"".join(record(last, number, b"some message") for number in range(3)))
    assert made.find() is None
    assert made.is_hopeless
