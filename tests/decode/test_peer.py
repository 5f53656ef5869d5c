"""One text form of peers and conversations: written, read, and read again from any text."""

from hypothesis import given
from hypothesis import strategies as st

from tests.depth import examples
from wirecheck.decode.peer import NO_PORT, Conversation, Peer

HOSTS = st.one_of(st.ip_addresses().map(str), st.from_regex(r"[a-z][a-z0-9.-]{0,30}", fullmatch=True))
PEERS = st.builds(Peer, HOSTS, st.integers(0, 65535))


@examples(40)
@given(PEERS, PEERS)
def test_what_is_written_is_read_again(client, server):
    assert Peer.of(str(client)) == client
    assert Conversation.of(str(Conversation(client, server))) == (client, server)


def test_the_text_form_has_brackets_around_ipv6_alone():
    assert str(Conversation(Peer("fd00::1", 4), Peer("10.0.0.9", 9092))) == "[fd00::1]:4>10.0.0.9:9092"
    assert str(Peer("broker-1.example", 9092)) == "broker-1.example:9092"


def test_a_peer_without_a_port_is_its_host():
    assert Peer.of("[fd00::1]") == ("fd00::1", NO_PORT)
    assert Peer.of("broker") == ("broker", NO_PORT)
    assert str(Peer.of("")) == ""


def test_any_number_that_was_sent_as_a_port_is_kept():
    assert str(Peer.of("broker:-7")) == "broker:-7"


@given(st.text(max_size=40))
def test_any_text_from_the_wire_can_be_read(text):
    assert isinstance(Peer.of(text).port, int)
    assert isinstance(Conversation.of(text).server.host, str)
