"""Warming goes the whole way."""

from wirecheck.decode.warm import SAID
from wirecheck.streaming.steps.warm import warm


def test_the_tiny_connection_passes_through_every_step():
    loop = warm()
    assert loop.result().json()["coverage"]["decoded_messages"] == 2 * len(SAID)
