#!/usr/bin/env bash
# kafka-go 0.4.51 and @platformatic/kafka 1.35.0 (classic members) with confluent-kafka 2.16.1 (group.protocol=consumer).
#
# What one would guess: Kafka 4 takes a group from the classic protocol to the new one while it runs (KIP-848), so members of
# both can be in one group, as a rolling update needs. kafkajs 2.2.4 and six other libraries can.
# What happens: both libraries label their subscription version 1 and leave out what version 1 has more than 0, the owned
# partitions. Brokers of the classic protocol never read it; those of a mixed group do. Where a member of the new
# protocol is, JoinGroup is answered INCONSISTENT_GROUP_PROTOCOL (4.4.0; UNKNOWN_SERVER_ERROR by 4.3.1), and kafka-go
# tries for ever. Where they are first, the member of the new protocol ends at GROUP_ID_NOT_FOUND, which is fatal.
#
# Seen: 2026-12-01, Kafka 4.3.1 and 4.4.0. Source: an own capture; kafka-go's issue 1156 names the missing field.
# Needs bash, python3 with venv, java 17 with Maven, go, node 20. 60 to 90 s.
set -euo pipefail
T=$(mktemp -d)
NODE=""
clean() {
  for one in $(jobs -p); do kill "$one" 2>/dev/null || true; done
  if [ -n "$NODE" ]; then for _ in 1 2 3 4 5 6 7 8; do kill -0 "$NODE" 2>/dev/null || break; sleep 1; done; kill -9 "$NODE" 2>/dev/null || true; fi
  rm -rf "$T" 2>/dev/null || { chmod -R u+w "$T"; rm -rf "$T"; }
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
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=4000000
X
  printf 'rootLogger.level=info\nrootLogger.appenderRef.c.ref=c\nappender.c.type=Console\nappender.c.name=c\nappender.c.layout.type=PatternLayout\nappender.c.layout.pattern=%%p %%m%%n\n' > "$T/log4j2.properties"
  $JAVA -Xmx128m -cp "$T/server/libs/*" kafka.tools.StorageTool format -t AAAAAAAAQACAAAAAAAAAAA -c "$T/node.properties" > "$T/format.log" 2>&1 || { cat "$T/format.log"; exit 1; }
  $JAVA -Xmx256m "-Dlog4j2.configurationFile=$T/log4j2.properties" -cp "$T/server/libs/*" kafka.Kafka "$T/node.properties" > "$T/node.log" 2>&1 &
  NODE=$!
  for _ in $(seq 300); do grep -q "Kafka Server started" "$T/node.log" && return 0; kill -0 "$NODE" || break; sleep 0.5; done
  tail -5 "$T/node.log"; exit 1
}

mkdir "$T/go" "$T/node"
cat > "$T/go/main.go" <<'X'
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/segmentio/kafka-go"
)

func main() {
	say := kafka.LoggerFunc(func(text string, parts ...any) { fmt.Printf(text+"\n", parts...) })
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{os.Args[1]}, Topic: "orders", GroupID: os.Args[2], StartOffset: kafka.FirstOffset, ErrorLogger: say})
	for {
		if _, err := reader.ReadMessage(context.Background()); err == nil {
			fmt.Println("READ")
		}
	}
}
X
cat > "$T/node/member.js" <<'X'
const [library, where, groupId] = process.argv.slice(2);
process.on("unhandledRejection", (error) => console.log(error));
(async () => {
  if (library === "kafkajs") {
    const consumer = new (require("kafkajs").Kafka)({ brokers: [where], logLevel: 1 }).consumer({ groupId, heartbeatInterval: 1000 });
    await consumer.connect();
    await consumer.subscribe({ topic: "orders", fromBeginning: true });
    return consumer.run({ eachMessage: async () => console.log("READ") });
  }
  const { Consumer } = await import("@platformatic/kafka");
  const consumer = new Consumer({ clientId: "p", groupId, bootstrapBrokers: [where] });
  const stream = await consumer.consume({ topics: ["orders"], mode: "earliest", sessionTimeout: 10000, heartbeatInterval: 1000 });
  stream.on("data", () => console.log("READ"));
})().catch((error) => console.log((error.errors ?? [error]).map((one) => one.apiId ?? one.message).join(), error.message));
X
(cd "$T/go" && export GOFLAGS=-modcacherw && go mod init member && go get github.com/segmentio/kafka-go@v0.4.51 && go mod tidy && go build -o member .) > "$T/go.log" 2>&1 || { tail -5 "$T/go.log"; exit 1; }
(cd "$T/node" && npm install --no-audit --no-fund kafkajs@2.2.4 @platformatic/kafka@1.35.0) > "$T/npm.log" 2>&1 || { tail -5 "$T/npm.log"; exit 1; }
python3 -m venv "$T/env"
PATH="$T/env/bin:$PATH"
pip install -q confluent-kafka==2.16.1 2> "$T/pip.log" || { tail -5 "$T/pip.log"; exit 1; }
start_node

cat > "$T/new.py" <<'X'
"""A topic that is written to, and a member of the new protocol in each of these groups: new.py WHERE SECONDS GROUP ..."""
import sys
import threading
import time

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

where, seconds, *groups = sys.argv[1:]
end = time.time() + float(seconds)


def read(group):
    consumer = Consumer({"bootstrap.servers": where, "group.id": group, "group.protocol": "consumer", "auto.offset.reset": "earliest", "log_level": 0})
    consumer.subscribe(["orders"])
    seen, fatal = 0, ""
    while time.time() < end:
        message = consumer.poll(0.3)
        if message is not None and message.error():
            fatal = fatal or message.error().str().rpartition(": ")[2]
        seen += message is not None and not message.error()
    sys.stdout.write(f"{group} new protocol: {'reads' if seen else 'reads nothing'} {fatal}\n")


def write():
    writer, number = Producer({"bootstrap.servers": where}), 0
    while time.time() < end:
        number += 1
        writer.produce("orders", b"x", partition=number % 4)
        writer.poll(0.05)


if not groups:
    admin = AdminClient({"bootstrap.servers": where})
    admin.create_topics([NewTopic("orders", 4, 1)])["orders"].result(30)
threads = [threading.Thread(target=read, args=(one,)) for one in groups] or [threading.Thread(target=write)]
[one.start() for one in threads]
[one.join() for one in threads]
X
W="127.0.0.1:$PORT"
classic() {
  "$T/go/member" "$W" "$1-kafka-go" > "$T/$1-kafka-go" 2>&1 &
  node "$T/node/member.js" platformatic "$W" "$1-platformatic" > "$T/$1-platformatic" 2>&1 &
  (cd "$T/node" && exec node member.js kafkajs "$W" "$1-kafkajs") > "$T/$1-kafkajs" 2>&1 &
}
python3 "$T/new.py" "$W" 50 &
sleep 4
classic first
python3 "$T/new.py" "$W" 40 second-kafka-go second-platformatic second-kafkajs > "$T/second.new" 2>&1 &
SECOND=$!
sleep 15
python3 "$T/new.py" "$W" 20 first-kafka-go first-platformatic first-kafkajs > "$T/first.new" 2>&1 &
FIRST=$!
classic second
wait "$FIRST" "$SECOND"
for one in kafka-go platformatic kafkajs; do
  for order in first second; do
    grep "^$order-$one " "$T/$order.new"
    echo "$order-$one classic: $(grep -c READ "$T/$order-$one") records; $(grep -v READ "$T/$order-$one" | grep -io 'inconsistent group protocol\|INCONSISTENT_GROUP_PROTOCOL' | head -1)"
  done
done | tee "$T/result"
WRONG=""
ok() { grep -Eq "$1" "$T/result" || WRONG="no line like $1"; }
for one in kafka-go platformatic; do
  ok "^first-$one new protocol: reads nothing .*group id does not exist"
  ok "^first-$one classic: [1-9]"
  ok "^second-$one new protocol: reads "
  ok "^second-$one classic: 0 records; (Inconsistent Group Protocol|INCONSISTENT_GROUP_PROTOCOL)"
  ok "^(first|second)-kafkajs new protocol: reads "
done
ok "^first-kafkajs classic: [1-9]"
ok "^second-kafkajs classic: [1-9]"
[ -z "$WRONG" ] || { echo "not as described: $WRONG"; exit 1; }
echo "as described: each of the two keeps members of the new protocol out, and is kept out by them; kafkajs is not"
