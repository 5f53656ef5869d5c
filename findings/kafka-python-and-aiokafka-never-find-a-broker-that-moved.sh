#!/usr/bin/env bash
# kafka-python 3.0.12 and aiokafka 0.14.0, consumers of a group, whose only broker moves to another port.
#
# What one would guess: a client whose brokers are all gone asks its bootstrap address again, as in Kubernetes, where that
# is a service which is always there (KIP-899 and KIP-1102 are about this, and are the default in librdkafka and Java).
# What happens: these two read nothing more. They connect to the former port again and again and report no error. Neither
# sends anything to the bootstrap address, where the broker answers with its new port 5 s later. librdkafka 2.16.0,
# Java 4.4.0, sarama 1.61.1 and franz-go 1.22.3 read on within 10 s, kafka-go 0.4.51 and kafkajs 2.2.4 after 30 s.
#
# Seen: 2026-12-01, against Apache Kafka 4.4.0. Source: an own capture, and the run below.
# Needs bash, python3 with venv, java 17 with Maven. 90 s.
set -euo pipefail
T=$(mktemp -d)
NODE=""
stop_node() { kill "$NODE" 2>/dev/null || true; for _ in $(seq 40); do kill -0 "$NODE" 2>/dev/null || return 0; sleep 0.5; done; kill -9 "$NODE" 2>/dev/null || true; }
clean() {
  for one in $(jobs -p); do [ "$one" = "$NODE" ] || kill "$one" 2>/dev/null || true; done
  if [ -n "$NODE" ]; then stop_node; fi
  rm -rf "$T" 2>/dev/null || { sleep 2; rm -rf "$T"; }
}
trap clean EXIT
JAVA="java -XX:+UseSerialGC -XX:TieredStopAtLevel=1"

# The jars of a package and of what it needs: jars FOLDER GROUP:ARTIFACT:VERSION ...
jars() {
  local to=$1; shift; mkdir -p "$to"
  { echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version><dependencies>'
    for one in "$@"; do IFS=: read -r g a v <<< "$one"; echo "<dependency><groupId>$g</groupId><artifactId>$a</artifactId><version>$v</version></dependency>"; done
    echo '</dependencies></project>'; } > "$to/pom.xml"
  mvn -q -B -f "$to/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$to/libs" > /dev/null
}

# One Kafka 4.4.0 node on loopback, broker and controller in one. It can be started again on another port.
prepare_node() {
  jars "$T/server" org.apache.kafka:kafka_2.13:4.4.0 org.apache.kafka:kafka-tools:4.4.0 org.apache.logging.log4j:log4j-core:2.24.3 org.apache.logging.log4j:log4j-slf4j-impl:2.24.3
  read -r PORT SECOND CPORT BOOTSTRAP < <(python3 -c 'import socket
s = [socket.socket() for _ in "abcd"]
[x.bind(("127.0.0.1", 0)) for x in s]
print(*[x.getsockname()[1] for x in s])')
  cat > "$T/node.properties" <<X
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:$PORT,CONTROLLER://127.0.0.1:$CPORT
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.quorum.voters=1@127.0.0.1:$CPORT
log.dirs=$T/data
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=4000000
X
  printf 'rootLogger.level=info\nrootLogger.appenderRef.c.ref=c\nappender.c.type=Console\nappender.c.name=c\nappender.c.layout.type=PatternLayout\nappender.c.layout.pattern=%%p %%m%%n\n' > "$T/log4j2.properties"
  $JAVA -Xmx128m -cp "$T/server/libs/*" kafka.tools.StorageTool format -t AAAAAAAAQACAAAAAAAAAAA -c "$T/node.properties" > "$T/format.log" 2>&1 || { cat "$T/format.log"; exit 1; }
}
start_node() {
  $JAVA -Xmx256m "-Dlog4j2.configurationFile=$T/log4j2.properties" -cp "$T/server/libs/*" kafka.Kafka "$T/node.properties" > "$T/node.log" 2>&1 &
  NODE=$!
  for _ in $(seq 300); do grep -q "Kafka Server started" "$T/node.log" && return 0; kill -0 "$NODE" || break; sleep 0.5; done
  tail -5 "$T/node.log"; exit 1
}

# The bootstrap address: a service that forwards to where the broker is now.
cat > "$T/service.py" <<'X'
import select
import socket
import sys
import threading

listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))


def forward(client):
    try:
        with client, socket.create_connection(("127.0.0.1", int(open(sys.argv[2]).read()))) as broker:
            while True:
                for one in select.select([client, broker], [], [])[0]:
                    data = one.recv(65536)
                    if not data:
                        return
                    (broker if one is client else client).sendall(data)
    except OSError:
        pass


while True:
    threading.Thread(target=forward, args=(listening.accept()[0],), daemon=True).start()
X

cat > "$T/members.py" <<'X'
"""A writer and three consumers, by one bootstrap address; how many records each has read: members.py WHERE SECONDS"""
import asyncio
import logging
import sys
import threading
import time

import aiokafka
import confluent_kafka
import kafka
from confluent_kafka.admin import AdminClient, NewTopic

logging.disable(logging.CRITICAL)
where, end = sys.argv[1], time.time() + float(sys.argv[2])
admin = AdminClient({"bootstrap.servers": where})
admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(30)
read = {"librdkafka": 0, "kafka-python": 0, "aiokafka": 0}


def write():
    writer = confluent_kafka.Producer({"bootstrap.servers": where, "log_level": 0})
    while time.time() < end:
        writer.produce("orders", b"x")
        writer.poll(0)
        time.sleep(0.2)


def by_librdkafka():
    consumer = confluent_kafka.Consumer({"bootstrap.servers": where, "group.id": "r", "auto.offset.reset": "earliest", "log_level": 0})
    consumer.subscribe(["orders"])
    while time.time() < end:
        message = consumer.poll(0.3)
        read["librdkafka"] += message is not None and not message.error()


def by_kafka_python():
    consumer = kafka.KafkaConsumer("orders", bootstrap_servers=where, group_id="k", auto_offset_reset="earliest")
    while time.time() < end:
        read["kafka-python"] += sum(map(len, consumer.poll(300).values()))


async def by_aiokafka():
    consumer = aiokafka.AIOKafkaConsumer("orders", bootstrap_servers=where, group_id="a", auto_offset_reset="earliest")
    await consumer.start()
    while time.time() < end:
        read["aiokafka"] += sum(map(len, (await consumer.getmany(timeout_ms=300)).values()))


for work in (write, by_librdkafka, by_kafka_python, lambda: asyncio.run(by_aiokafka())):
    threading.Thread(target=work, daemon=True).start()
while time.time() < end:
    time.sleep(1)
    print(*(f"{name}={count}" for name, count in read.items()), flush=True)
X
python3 -m venv "$T/env"
PATH="$T/env/bin:$PATH"
pip install -q confluent-kafka==2.16.1 kafka-python==3.0.12 aiokafka==0.14.0 2> "$T/pip.log" || { tail -5 "$T/pip.log"; exit 1; }
prepare_node
start_node
echo "$PORT" > "$T/now"
python3 "$T/service.py" "$BOOTSTRAP" "$T/now" &
python3 "$T/members.py" "127.0.0.1:$BOOTSTRAP" 90 > "$T/python" 2> "$T/python.log" &
sleep 20
stop_node
sed -i "s/:$PORT,/:$SECOND,/" "$T/node.properties"
start_node
echo "$SECOND" > "$T/now"
there() { grep -o "$1=[0-9]*" "$T/python" | tail -1 | cut -d= -f2; }
LIBRARIES="librdkafka kafka-python aiokafka"
for one in $LIBRARIES; do there "$one" > "$T/then-$one"; done
sleep 45
RESULT=""
for one in $LIBRARIES; do
  before=$(cat "$T/then-$one")
  after=$(there "$one")
  echo "$one: read $before records until the broker moved, and $((after - before)) in 45 s after that"
  RESULT="$RESULT $one=$((before > 20)):$((after - before > 20))"
done
[ "$RESULT" = " librdkafka=1:1 kafka-python=1:0 aiokafka=1:0" ] || { echo "not as described: see the lines above"; exit 1; }
echo "as described: two of the three never look at the bootstrap address again"
