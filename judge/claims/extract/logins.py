"""Claims about who a client is: the user name of a SASL login, and the principal that a broker forwards a request for.

Rule: a name counts only if the server answered without an error. The first answer to SCRAM comes before the password
is checked, so the results count a name only for a client that was granted something.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.columns import value_per
from wirecheck.decode.sasl_name import sasl_name
from wirecheck.decode.wire import REQUEST, RESPONSE
from wirecheck.judge.claims.batch import Batch
from wirecheck.judge.claims.reduce import Column, Rows

if TYPE_CHECKING:
    from wirecheck.decode.holes import Field

NOT_ANSWERED = -1


def claims(batch: Batch) -> Iterator[Rows]:
    """`User:name`, as Kafka's default principal builder makes it of the name of a login."""
    if (logins := batch.lines("SaslAuthenticate", "request")) is None:
        return
    mechanisms = [batch.exchanges.connections[at].sasl for at in batch.exchanges.connection[logins.message].tolist()]
    tokens: list[Field | None] = [logins.table["auth_bytes"].field(row) for row in range(len(logins))]
    pairs = zip(mechanisms, tokens, strict=True)
    found = [None if token is None else sasl_name(mechanism, token) for mechanism, token in pairs]
    answers = batch.tables("SaslAuthenticate", "response")
    if not answers:
        return
    error = value_per(logins.partner, answers[""], "error_code", NOT_ANSWERED)
    names = [one and f"User:{one.name}" for one in found]
    number = {name: code for code, name in enumerate(dict.fromkeys(names))}
    principal = Column(np.array([number[name] for name in names], np.int64), [*number])
    yield logins.states("login", ["@who", principal], error == 0)


def forwarded(batch: Batch) -> Iterator[Rows]:
    """Of requests inside Envelopes: their clients, with the principals that the brokers state."""
    senders = batch.senders
    assert senders is not None
    requests = np.flatnonzero(batch.decoded.messages.side == REQUEST)
    key = ["@client_id", senders.host.take(requests), "@endpoint", senders.principal.take(requests)]
    yield batch.states("login", key, requests, batch.partner(requests, RESPONSE) >= 0)
