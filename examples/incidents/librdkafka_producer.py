"""A producer on librdkafka that goes on for ever: librdkafka_producer.py BOOTSTRAP TOPIC."""

import sys
import time

import confluent_kafka

bootstrap, topic = sys.argv[1:]
print("librdkafka", confluent_kafka.libversion()[0], flush=True)
producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "client.id": "till", "acks": "1"})
while True:
    producer.produce(topic, b"sold", on_delivery=lambda error, _: error and print(error, flush=True))
    producer.poll(0)
    time.sleep(0.2)
