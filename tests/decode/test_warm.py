"""What warming sends through the kernels is real traffic, as the tests' own encoder writes it."""

import base64
import runpy

from tests.build import plain
from tests.decode.log.batches import Batch, record
from wirecheck.decode import warm
from wirecheck.decode.show.message_lines import Filter, of

ID = "JMxDMvfeRaOyTjPWGqDRbA"
TOPIC_RECORD = b"\x01\x02\x00\x02t" + base64.urlsafe_b64decode(ID + "==") + b"\x00"


def test_its_messages_are_what_the_encoder_writes():
    head = [{"correlationId": number, "clientId": "w"} for number in (2, 3)]
    states = [{"leaderId": 1, "replicaNodes": [1], "isrNodes": [1]}]
    topics = [{"name": "t", "topicId": ID, "partitions": states}]
    asked = [{"topic": "__cluster_metadata", "partitions": [{"partitionMaxBytes": 1}]}]
    log = base64.b64encode(Batch(records=[record(TOPIC_RECORD)]).bytes()).decode()
    told = [{"topic": "__cluster_metadata", "partitions": [{"highWatermark": 1, "records": log}]}]
    assert [
        plain("Metadata", "request", 10, {"topics": None}, head[0]),
        plain("Metadata", "response", 10, {"topics": topics}, head[0]),
        plain("Fetch", "request", 12, {"replicaId": 1, "topics": asked}, head[1]),
        plain("Fetch", "response", 12, {"responses": told}, head[1]),
    ] == [warm.sized(message) for message in (warm.METADATA, warm.TOPIC, warm.FETCH, warm.LOG)]


def test_all_of_it_is_followed_and_decoded():
    lines = list(of([warm.frames()], Filter()))
    assert [(line["api"], line["side"]) for line in lines if "body" in line] == [
        (api, side) for api in ("ApiVersions", "Metadata", "Fetch") for side in ("request", "response")
    ]
    runpy.run_path(warm.__file__, run_name="__main__")
