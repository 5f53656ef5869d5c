"""Numbers that a record can have, without its tag; and how often may be tried."""

import pytest

from wirecheck.capture.tls.cipher_suites import TLS_1_3
from wirecheck.capture.tls.joining import LIVE, OFFLINE, Budget
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
