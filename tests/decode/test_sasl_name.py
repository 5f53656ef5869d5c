"""The user name of a login: read from what Kafka's clients send, and from nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirecheck.decode.holes import Field, laid_out
from wirecheck.decode.sasl_name import sasl_name

NAMES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=40)
SECRETS = st.binary(min_size=1, max_size=40).filter(lambda data: b"\0" not in data)
NONCES = st.text("0123456789abcdefghijklmnopqrstuvwxyz+/=", min_size=1).map(str.encode)


def token(data):
    return laid_out(data)


def redacted(data, end):
    return laid_out(data[:end], [(end, len(data) - end)])


def escaped(name):
    return name.replace("=", "=3D").replace(",", "=2C").encode()


@given(NAMES, SECRETS, st.booleans())
def test_of_plain_the_name_is_read_and_the_password_is_behind_its_end(name, password, authorized):
    data = (name.encode() if authorized else b"") + b"\0" + name.encode() + b"\0" + password
    found = sasl_name("PLAIN", token(data))
    assert found.name == name
    assert data[found.end :] == b"\0" + password
    assert sasl_name("PLAIN", redacted(data, found.end)) == found


@given(NAMES, NONCES, st.sampled_from(["SCRAM-SHA-256", "SCRAM-SHA-512"]))
def test_of_scram_the_name_is_read_without_its_escapes(name, nonce, mechanism):
    data = b"n,,n=" + escaped(name) + b",r=" + nonce
    found = sasl_name(mechanism, token(data))
    assert found.name == name
    assert data[found.end :] == b",r=" + nonce
    assert sasl_name(mechanism, redacted(data, found.end)) == found


@pytest.mark.parametrize(
    ("mechanism", "data"),
    [
        (None, b"\0alice\0secret"),
        ("GSSAPI", b"\0alice\0secret"),
        ("OAUTHBEARER", b"n,,\1auth=Bearer c2VjcmV0\1\1"),
        ("other", b"\0alice\0secret"),
        ("PLAIN", b"n,,\1auth=Bearer c2VjcmV0\1\1"),
        ("PLAIN", b"n,,n=alice,r=nonce"),
        ("PLAIN", b"\0alice\0sec\0ret"),
        ("PLAIN", b"\0alice"),
        ("PLAIN", b"\0\0secret"),
        ("PLAIN", b"secret\0alice\0secret"),
        ("PLAIN", b"\0al\nice\0secret"),
        ("PLAIN", b"\0\xff\xfe\0secret"),
        ("PLAIN", b"\0" + b"a" * 256 + b"\0secret"),
        ("PLAIN", b""),
        ("PLAIN", b"\0a\0" + b"x" * (1 << 14)),
        ("SCRAM-SHA-256", b"\0alice\0secret"),
        ("SCRAM-SHA-256", b"c=biws,r=nonce,p=cHJvb2Y="),
        ("SCRAM-SHA-256", b"n,a=bob,n=alice,r=nonce"),
        ("SCRAM-SHA-256", b"n,,n=al=XXice,r=nonce"),
        ("SCRAM-SHA-256", b"n,,n=alice"),
    ],
)
def test_other_tokens_have_no_name(mechanism, data):
    assert sasl_name(mechanism, token(data)) is None


def test_the_id_of_a_delegation_token_is_not_a_name():
    assert sasl_name("SCRAM-SHA-256", token(b"n,,n=s3cretTokenId,r=nonce,tokenauth=true")) is None


def test_a_token_that_was_redacted_elsewhere_has_no_name():
    data = b"\0alice\0secret"
    assert sasl_name("PLAIN", redacted(data, 0)) is None
    assert sasl_name("PLAIN", redacted(data, 3 + len(b"alice"))) is None
    two = Field(np.frombuffer(bytearray(data), np.uint8), np.array([(6, 8), (9, 13)], np.int64))
    assert sasl_name("PLAIN", two) is None
