#!/usr/bin/env bash
# aiokafka 0.14.0, consumer group, topic deleted and there again five seconds later.
#
# What one would guess: it asks for metadata every retry_backoff_ms (100 ms by default): 10 requests a second, 50 in all.
# What happens: it asks as fast as it is answered, some hundred times a second, until the topic is there again.
#
# Seen: 2026-11-28, against Apache Kafka 4.4.0 (750 to 1,000 Metadata requests in 1.5 s in own captures). Source: those, and
# the run below, which counts what the library itself logs that it sends. Needs bash, python3 with venv, java 17 with Maven. 90 s.
set -euo pipefail
T=$(mktemp -d)
NODE=""
clean() {
  if [ -n "$NODE" ]; then kill "$NODE" 2>/dev/null || true; for _ in 1 2 3 4 5 6 7 8; do kill -0 "$NODE" 2>/dev/null || break; sleep 1; done; kill -9 "$NODE" 2>/dev/null || true; fi
  rm -rf "$T"
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

# One Kafka 4.4.0 node on loopback, broker and controller in one; the ports are free ones.
start_node() {
  jars "$T/server" org.apache.kafka:kafka_2.13:4.4.0 org.apache.kafka:kafka-tools:4.4.0 org.apache.logging.log4j:log4j-core:2.24.3 org.apache.logging.log4j:log4j-slf4j-impl:2.24.3
  read -r PORT CPORT < <(python3 -c 'import socket
s = [socket.socket() for _ in "ab"]
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
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=4000000
X
  printf 'rootLogger.level=info\nrootLogger.appenderRef.c.ref=c\nappender.c.type=Console\nappender.c.name=c\nappender.c.layout.type=PatternLayout\nappender.c.layout.pattern=%%p %%m%%n\n' > "$T/log4j2.properties"
  $JAVA -Xmx128m -cp "$T/server/libs/*" kafka.tools.StorageTool format -t AAAAAAAAQACAAAAAAAAAAA -c "$T/node.properties" > "$T/format.log" 2>&1 || { cat "$T/format.log"; exit 1; }
  $JAVA -Xmx384m "-Dlog4j2.configurationFile=$T/log4j2.properties" -cp "$T/server/libs/*" kafka.Kafka "$T/node.properties" > "$T/node.log" 2>&1 &
  NODE=$!
  for _ in $(seq 300); do grep -q "Kafka Server started" "$T/node.log" && return 0; kill -0 "$NODE" || break; sleep 0.5; done
  tail -5 "$T/node.log"; exit 1
}

# The driver: a topic of BEFORE partitions with 66 records, a client that reads them; then the topic is deleted, and
# GAP seconds later it is there again with AFTER partitions, 60 records at once and two a second for SECONDS.
# drive OUT TOPIC BEFORE AFTER GAP SECONDS -- COMMAND ...: what COMMAND prints has the values, old-N and new-N.
tools() { python3 -m venv "$T/env"; PATH="$T/env/bin:$PATH"; pip install -q confluent-kafka==2.16.1 2> /dev/null; cat > "$T/drive.py" <<'P'
import os, re, subprocess, sys, time
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
out, topic, before, after, gap, seconds, _, *command = sys.argv[1:]
where = os.environ["BOOTSTRAP"]
admin = AdminClient({"bootstrap.servers": where, "client.id": "admin"})
writer = Producer({"bootstrap.servers": where, "client.id": "writer", "topic.metadata.refresh.interval.ms": 500})

def write(prefix, begin, end, partitions):
    for i in range(begin, end):
        for _ in range(100):
            try:
                writer.produce(topic, f"{prefix}-{i}".encode(), partition=i % partitions)
                break
            except KafkaException:
                writer.poll(0.1)
    writer.flush(30)

def create(partitions):
    for _ in range(50):
        try:
            return admin.create_topics([NewTopic(topic, partitions, 1)], request_timeout=20)[topic].result(30)
        except KafkaException as error:
            if "ALREADY_EXISTS" not in str(error):
                raise
            time.sleep(0.2)

def read(word):
    return len(re.findall(rf"\b{word}-\d+", open(out, errors="replace").read()))

create(int(before))
write("old", 0, 66, int(before))
with open(out, "w") as stdout:
    client = subprocess.Popen(command, stdout=stdout, stderr=open(out + ".err", "w"), stdin=subprocess.DEVNULL)
try:
    end = time.time() + 90
    while read("old") < 66 and time.time() < end:
        time.sleep(0.3)
    time.sleep(6)
    admin.delete_topics([topic], request_timeout=20)[topic].result(30)
    time.sleep(float(gap))
    create(int(after))
    write("new", 0, 60, int(after))
    began, i, first = time.time(), 60, None
    while time.time() < began + float(seconds):
        write("new", i, i + 1, int(after))
        i += 1
        if first is None and read("new"):
            first = time.time() - began
        time.sleep(0.5)
    first = "never" if first is None else f"after {first:.0f} s"
    print(f"{topic}: {before} -> {after} partitions; old records read: {read('old')}; new: {read('new')} of {i}, first {first}")
finally:
    if client.poll() is None:
        client.terminate()
    try:
        client.wait(10)
    except subprocess.TimeoutExpired:
        client.kill()
P
}
drive() { BOOTSTRAP="127.0.0.1:$PORT" timeout 300 python3 "$T/drive.py" "$@"; }

tools
pip install -q aiokafka==0.14.0 2> /dev/null
cat > "$T/c.py" <<'P'
import asyncio, collections, logging, signal, sys, time
from aiokafka import AIOKafkaConsumer
where, topic = sys.argv[1:]
counts, ended = collections.Counter(), []

class Count(logging.Handler):
    def emit(self, record):
        if "metadata request" in record.getMessage().lower():
            counts[int(time.time())] += 1

log = logging.getLogger("aiokafka")
log.setLevel(logging.DEBUG)
log.addHandler(Count())
log.propagate = False

async def main():
    c = AIOKafkaConsumer(topic, bootstrap_servers=where, group_id=topic, auto_offset_reset="earliest")
    await c.start()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.append, 1)
    while not ended:
        for messages in (await c.getmany(timeout_ms=300)).values():
            for m in messages:
                print(m.value.decode(), flush=True)
    print("metadata requests by second:", [counts[s] for s in range(min(counts), max(counts) + 1)], flush=True)
    print("most in a second:", max(counts.values()), flush=True)
    await c.stop()

asyncio.run(main())
P
start_node
drive "$T/out" away 1 1 5 15 -- python3 "$T/c.py" "127.0.0.1:$PORT" away
grep 'by second\|most in' "$T/out"
[ "$(sed -n 's/most in a second: //p' "$T/out")" -gt 100 ] || { echo "not as described: at most ten times what retry_backoff_ms allows"; exit 1; }
echo "as described: more than ten times what retry_backoff_ms allows"
