"""reader.py LIBRARY BOOTSTRAP TOPIC CLIENT_ID GROUP: prints what it reads until SIGTERM."""

import asyncio
import signal
import subprocess
import sys
import threading
import time

library, bootstrap, topic, client_id, group = sys.argv[1:]
ended = threading.Event()


def say(kind, *words):
    print(kind, f"{time.time():.3f}", *(str(word).replace("\n", " ") for word in words), flush=True)


def error(thrown):
    say("E", f"{type(thrown).__name__}:", thrown)
    time.sleep(0.3)


def librdkafka():
    from confluent_kafka import Consumer, TopicPartition

    own = {"bootstrap.servers": bootstrap, "client.id": client_id, "group.id": group, "auto.offset.reset": "earliest"}
    own |= {"auto.commit.interval.ms": 1000, "error_cb": lambda thrown: say("E", thrown)}
    if "848" in library:
        own["group.protocol"] = "consumer"
    consumer = Consumer(own)
    if "assign" in library:
        consumer.assign([TopicPartition(topic, 0, -2)])
    else:
        consumer.subscribe([topic])
    while not ended.is_set():
        message = consumer.poll(0.3)
        if message is None:
            continue
        if message.error():
            say("E", message.error())
        else:
            say("R", message.offset(), message.value().decode(), message.partition())
    consumer.close()


def kafka_python():
    from kafka import KafkaConsumer

    own = {"bootstrap_servers": bootstrap, "client_id": client_id, "group_id": group, "auto_offset_reset": "earliest"}
    consumer = KafkaConsumer(topic, **own, auto_commit_interval_ms=1000)
    while not ended.is_set():
        try:
            for messages in consumer.poll(300).values():
                for message in messages:
                    say("R", message.offset, message.value.decode(), message.partition)
        except Exception as thrown:
            error(thrown)
    consumer.close()


async def aiokafka():
    from aiokafka import AIOKafkaConsumer

    own = {"bootstrap_servers": bootstrap, "client_id": client_id, "group_id": group, "auto_offset_reset": "earliest"}
    consumer = AIOKafkaConsumer(topic, **own, auto_commit_interval_ms=1000)
    await consumer.start()
    while not ended.is_set():
        try:
            for messages in (await consumer.getmany(timeout_ms=300)).values():
                for message in messages:
                    say("R", message.offset, message.value.decode(), message.partition)
        except Exception as thrown:
            error(thrown)
    await consumer.stop()


def kcat():
    """The command line tool, as a member of a group."""
    own = {"client.id": client_id, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 1000}
    options = [word for name, value in own.items() for word in ("-X", f"{name}={value}")]
    command = ["kcat", "-b", bootstrap, *options, "-u", "-f", "%o %s %p\\n", "-G", group, topic]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        pipes = (("R", process.stdout), ("E", process.stderr))
        for kind, pipe in pipes:
            threading.Thread(target=lambda kind=kind, pipe=pipe: [say(kind, line.strip()) for line in pipe]).start()
        while not ended.wait(0.3) and process.poll() is None:
            pass
        say("I", "ends with", process.poll())
        process.terminate()


signal.signal(signal.SIGTERM, lambda *_: ended.set())
if library.startswith("librdkafka"):
    librdkafka()
elif library == "kcat":
    kcat()
elif library == "kafka-python":
    kafka_python()
else:
    asyncio.run(aiokafka())
say("I", "end")
