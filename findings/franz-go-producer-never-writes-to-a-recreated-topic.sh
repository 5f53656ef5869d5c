#!/usr/bin/env bash
# franz-go 1.22.3, producers (the default one, and one with acks=0), topic deleted and created again two seconds later.
#
# What one would guess: like producers of other libraries it fails for a moment, asks for metadata, and writes to the new
# topic, which has the same name.
# What happens: it writes by topic ID (Produce v13) and keeps the ID of the former topic for as long as its client lives.
# The default producer sends nothing more: each ProduceSync fails at once with UNKNOWN_TOPIC_ID. The one with acks=0
# goes on with the former ID: the broker closes its connection after each write, and each ProduceSync succeeds, so
# its application knows nothing of it. Neither writes again but after PurgeTopicsFromProducing, or in a new process.
#
# Seen: 2026-12-01, against Apache Kafka 4.3.1 and 4.4.0 (74 of 74 writes lost). Ten other producers of seven libraries, five
# of them with acks=0, wrote on by name. Source: an own capture, and the run below. Needs bash, python3 with venv, java 17
# with Maven, go. 60 to 90 s.
set -euo pipefail
T=$(mktemp -d)
NODE=""
clean() {
  if [ -n "$NODE" ]; then kill "$NODE" 2>/dev/null || true; for _ in 1 2 3 4 5 6 7 8; do kill -0 "$NODE" 2>/dev/null || break; sleep 1; done; kill -9 "$NODE" 2>/dev/null || true; fi
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
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.cleaner.dedupe.buffer.size=4000000
X
  printf 'rootLogger.level=info\nrootLogger.appenderRef.c.ref=c\nappender.c.type=Console\nappender.c.name=c\nappender.c.layout.type=PatternLayout\nappender.c.layout.pattern=%%p %%m%%n\n' > "$T/log4j2.properties"
  $JAVA -Xmx128m -cp "$T/server/libs/*" kafka.tools.StorageTool format -t AAAAAAAAQACAAAAAAAAAAA -c "$T/node.properties" > "$T/format.log" 2>&1 || { cat "$T/format.log"; exit 1; }
  $JAVA -Xmx256m "-Dlog4j2.configurationFile=$T/log4j2.properties" -cp "$T/server/libs/*" kafka.Kafka "$T/node.properties" > "$T/node.log" 2>&1 &
  NODE=$!
  for _ in $(seq 300); do grep -q "Kafka Server started" "$T/node.log" && return 0; kill -0 "$NODE" || break; sleep 0.5; done
  tail -5 "$T/node.log"; exit 1
}

# A program that writes ten records to orders, deletes the topic, creates it again, and writes twenty more, one a second.
mkdir "$T/writer"
cat > "$T/writer/main.go" <<'X'
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var ctx = context.Background()

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
}

func create(admin *kgo.Client) {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "orders", 1, 1
	request := kmsg.NewPtrCreateTopicsRequest()
	request.TimeoutMillis, request.Topics = 10_000, append(request.Topics, topic)
	_, err := request.RequestWith(ctx, admin)
	must(err)
}

func remove(admin *kgo.Client) {
	name := "orders"
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = &name
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.TimeoutMillis, request.TopicNames, request.Topics = 10_000, []string{name}, append(request.Topics, topic)
	_, err := request.RequestWith(ctx, admin)
	must(err)
}

func main() {
	where := kgo.SeedBrokers(os.Args[1])
	admin, err := kgo.NewClient(where)
	must(err)
	create(admin)
	options := map[string][]kgo.Opt{
		"default": {where},
		"acks=0":  {where, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite()},
		"purge":   {where},
	}
	writers, good, last := map[string]*kgo.Client{}, map[string]int{}, map[string]error{}
	for name, those := range options {
		writers[name], err = kgo.NewClient(those...)
		must(err)
	}
	write := func(times int, word string) {
		for range times {
			for name, one := range writers {
				until, cancel := context.WithTimeout(ctx, 10*time.Second)
				err := one.ProduceSync(until, &kgo.Record{Topic: "orders", Value: []byte(name + " " + word)}).FirstErr()
				cancel()
				if err == nil {
					good[name]++
				} else {
					last[name] = err
				}
				if err != nil && name == "purge" {
					one.PurgeTopicsFromProducing("orders")
				}
			}
			time.Sleep(time.Second)
		}
	}
	write(10, "former")
	fmt.Println("to the former topic:", good, last)
	clear(good)
	remove(admin)
	time.Sleep(2 * time.Second)
	create(admin)
	write(20, "new")
	fmt.Println("after it was created again, accepted by the client:", good)
	fmt.Println("last errors:", last)

	reader, err := kgo.NewClient(where, kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	must(err)
	found := map[string]int{}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		until, cancel := context.WithTimeout(ctx, time.Second)
		reader.PollFetches(until).EachRecord(func(r *kgo.Record) { found[string(r.Value)]++ })
		cancel()
	}
	fmt.Println("in the new topic:", found)
	there := func(name string) int { return found[name+" new"] }
	if good["acks=0"] >= 18 && there("acks=0") == 0 && good["default"] == 0 && there("default") == 0 && there("purge") >= 10 {
		fmt.Println("SO")
	}
}
X
(cd "$T/writer" && export GOFLAGS=-modcacherw && go mod init writer && go get github.com/twmb/franz-go@v1.22.3 && go mod tidy && go build -o writer .) > "$T/go.log" 2>&1 || { tail -5 "$T/go.log"; exit 1; }
start_node
timeout 240 "$T/writer/writer" "127.0.0.1:$PORT" > "$T/seen" 2> "$T/writer.log" || { tail -5 "$T/seen" "$T/writer.log"; exit 1; }
grep -v '^SO$' "$T/seen"
grep -q '^SO$' "$T/seen" || { echo "not as described: see the lines above"; exit 1; }
echo "as described: neither writes to the new topic, and the one with acks=0 reports that it does"
