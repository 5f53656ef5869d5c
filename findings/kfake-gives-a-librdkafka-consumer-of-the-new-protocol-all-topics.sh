#!/usr/bin/env bash
# kfake of 2026-05-15 (franz-go's fake cluster), confluent-kafka 2.16.1 (librdkafka), group.protocol=consumer (KIP-848).
#
# What one would guess: a consumer that subscribes to orders is assigned the partitions of orders, as by Kafka.
# What happens: it is assigned those of every topic. librdkafka sends an empty SubscribedTopicRegex beside the names, where
# Java sends null; Kafka takes the empty one for none, and kfake for an expression that fits every name.
#
# Seen: 2026-11-30 (983 records of orders written, 1,529 read). A test with kfake in place of Kafka reads other topics' records.
# Source: an own capture of the two, and the run below. Needs bash, python3 with venv, go. 60 s.
set -euo pipefail
T=$(mktemp -d)
FAKE=""
clean() {
  if [ -n "$FAKE" ]; then kill "$FAKE" 2>/dev/null || true; fi
  rm -rf "$T" 2>/dev/null || { chmod -R u+w "$T"; rm -rf "$T"; }
}
trap clean EXIT

mkdir "$T/fake"
cat > "$T/fake/main.go" <<'X'
package main

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders", "audit"))
	if err != nil {
		panic(err)
	}
	fmt.Println(cluster.ListenAddrs()[0])
	select {}
}
X
(cd "$T/fake" && export GOFLAGS=-modcacherw && go mod init fake && go get github.com/twmb/franz-go/pkg/kfake@v0.0.0-20260515175617-8268a5d078c0 && go build -o fake .) > "$T/go.log" 2>&1 || { tail -5 "$T/go.log"; exit 1; }
python3 -m venv "$T/venv"
PATH="$T/venv/bin:$PATH"
pip install -q confluent-kafka==2.16.1 2> "$T/pip.log" || { tail -5 "$T/pip.log"; exit 1; }

"$T/fake/fake" > "$T/address" &
FAKE=$!
for _ in $(seq 50); do [ -s "$T/address" ] && break; sleep 0.2; done

python3 - "$(cat "$T/address")" > "$T/seen" 2> "$T/client.log" <<'X' || { tail -5 "$T/client.log"; exit 1; }
import sys
import time

from confluent_kafka import Consumer

for protocol in ("classic", "consumer"):
    consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": f"g-{protocol}", "group.protocol": protocol})
    consumer.subscribe(["orders"])
    until = time.monotonic() + 30
    while not consumer.assignment() and time.monotonic() < until:
        consumer.poll(0.2)
    print(f"group.protocol={protocol}, subscribed to orders: assigned", *sorted({one.topic for one in consumer.assignment()}))
    consumer.close()
X
cat "$T/seen"
grep -q "classic, .* assigned orders$" "$T/seen"
grep -q "consumer, .* assigned audit orders$" "$T/seen" || { echo "not as described: the new protocol is assigned other topics"; exit 1; }
echo "as described: the new protocol is assigned a topic that was not subscribed to"
