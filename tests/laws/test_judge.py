"""Laws of the judge: whatever decodes is judged, however absurd; no message ends the run for all others.

Names, ids and numbers come from small pools, so that absurd messages also speak of the same topics, brokers and epochs.
"""

import random

import pytest

from tests.build import CASES, TEXTS, build
from tests.decode.log.batches import batch, remove_topic, topic
from tests.depth import some
from tests.judge.lab import B1, B3, Lab
from tests.judge.recorded_reads import undeclared
from wirecheck.decode.connection.exchanges import (
    ANSWERED,
    CLOSED_BY_CLIENT,
    CLOSED_BY_SERVER,
    NO_RESPONSE_DUE,
    ORPHAN,
    PENDING,
    REQUEST_UNSEEN,
    RESPONSE_UNSEEN,
)
from wirecheck.decode.layouts.program import Dialect
from wirecheck.decode.wire import REQUEST, RESPONSE

NAMES = ["orders", "payments", "", "__cluster_metadata", "localhost", "10.0.0.1", "a:b", "x-y", "1:2-3", "é\n|", "2"]
IDS = [bytes(16), bytes(15) + b"\1", b"\xff" * 16]
CLIENTS = ["app", "1", "3", None, "-1", "a:b-c"]
HOSTS = ["10.0.0.99", "10.0.0.98", *(broker.rpartition(":")[0] for broker in (B1, B3))]
OUTCOMES = {  # whether the request, and the response, was seen
    (True, True): [ANSWERED],
    (True, False): [NO_RESPONSE_DUE, RESPONSE_UNSEEN, CLOSED_BY_CLIENT, CLOSED_BY_SERVER, PENDING],
    (False, True): [REQUEST_UNSEEN, ORPHAN],
}
FORMS = {
    (layout.key, version, layout.side): layout
    for dialect, layout, version in CASES
    if dialect == Dialect.KAFKA and layout.side in {"request", "response"}
}
KEYS = sorted({key for key, _, _ in FORMS})


class Pools(random.Random):
    def choice(self, options):
        return super().choice(NAMES) if options is TEXTS and self.random() < 0.8 else super().choice(options)

    def randbytes(self, n):
        if n == 16:
            return super().choice(IDS)
        if n == 40 and self.random() < 0.7:  # a records field
            topic_id = super().choice(IDS)
            return batch(topic("orders", topic_id), remove_topic(topic_id), base_offset=self.randrange(3))
        return super().randbytes(n)


def say(talk, dice, at, focus):
    key = dice.choice(focus if dice.random() < 0.8 else KEYS)
    version = dice.choice(sorted({v for k, v, _ in FORMS if k == key}))
    number, halves = len(talk.exchanges) + 1, [-1, -1]
    for half, side in ((REQUEST, "request"), (RESPONSE, "response")):
        if dice.random() < 0.95:
            data = build(FORMS[key, version, side], version, dice).data
            halves[half] = len(talk.messages)
            talk.messages.append((data, half, key, version, number, at + half / 1000))
    if halves != [-1, -1]:
        talk.exchanges.append((*halves, dice.choice(OUTCOMES[halves[0] >= 0, halves[1] >= 0])))


def absurd(seed):
    """A lab in which nobody makes sense."""
    dice, lab = Pools(seed), Lab()
    lab.until = 500
    focus = dice.sample(KEYS, dice.randrange(1, 6))
    for _ in range(6):
        talk = lab.talk(dice.choice([B1, B3]), dice.choice(CLIENTS), host=dice.choice(HOSTS))
        at = dice.random() * 400
        for _ in range(6):
            say(talk, dice, at, focus)
            at += dice.choice([0.01, 1, 40])
    return lab


@pytest.mark.parametrize("seed", some(range(48)))
def test_whatever_decodes_is_judged(seed):
    lab = absurd(seed)
    assert lab.judge()["coverage"]
    assert undeclared(lab.judged) == set()
