// reader LIBRARY BOOTSTRAP TOPIC CLIENT_ID GROUP: prints what it reads until SIGTERM.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/IBM/sarama"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func say(kind string, words ...any) {
	now := fmt.Sprintf("%.3f", float64(time.Now().UnixMilli())/1000)
	fmt.Println(append([]any{kind, now}, words...)...)
}

func fail(err error) {
	say("E", strings.ReplaceAll(err.Error(), "\n", " "))
	time.Sleep(300 * time.Millisecond)
}

func main() {
	library, bootstrap, topic, id, group := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	switch {
	case strings.HasPrefix(library, "franz-go"):
		franz(ctx, library, bootstrap, topic, id, group)
	case library == "sarama":
		saramaGroup(ctx, bootstrap, topic, id, group)
	case library == "sarama-partition":
		saramaPartition(ctx, bootstrap, topic, id)
	default:
		segmentio(ctx, library, bootstrap, topic, id, group)
	}
	say("I", "end")
}

func franz(ctx context.Context, library, bootstrap, topic, id, group string) {
	opts := []kgo.Opt{kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.ClientID(id), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, nil))}
	if !strings.Contains(library, "assign") {
		opts = append(opts, kgo.ConsumerGroup(group), kgo.AutoCommitInterval(time.Second))
	}
	if strings.Contains(library, "848") {
		opts = append(opts, kgo.WithContext(context.WithValue(context.Background(), "opt_in_kafka_next_gen_balancer_beta", true)))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		fail(err)
		return
	}
	defer client.Close()
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		bad := false
		fetches.EachError(func(topic string, partition int32, err error) {
			if ctx.Err() == nil {
				say("E", topic, partition, err)
				bad = true
				if library == "franz-go-purge" && errors.Is(err, kerr.UnknownTopicID) {
					client.PurgeTopicsFromConsuming(topic)
					client.AddConsumeTopics(topic)
					say("I", "purged and added again")
				}
			}
		})
		fetches.EachRecord(func(r *kgo.Record) { say("R", r.Offset, string(r.Value), r.Partition) })
		if bad {
			time.Sleep(300 * time.Millisecond)
		}
	}
}

func saramaConfig(id string) *sarama.Config {
	sarama.Logger = log.New(os.Stderr, "", log.LstdFlags|log.Lmicroseconds)
	config := sarama.NewConfig()
	config.ClientID = id
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Return.Errors = true
	return config
}

type handler struct{}

func (handler) Setup(sarama.ConsumerGroupSession) error   { say("I", "session begins"); return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { say("I", "session ends"); return nil }
func (handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case m, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			say("R", m.Offset, string(m.Value), m.Partition)
			session.MarkMessage(m, "")
		case <-session.Context().Done():
			return nil
		}
	}
}

func saramaGroup(ctx context.Context, bootstrap, topic, id, group string) {
	client, err := sarama.NewConsumerGroup(strings.Split(bootstrap, ","), group, saramaConfig(id))
	if err != nil {
		fail(err)
		return
	}
	go func() {
		for err := range client.Errors() {
			fail(err)
		}
	}()
	for ctx.Err() == nil {
		if err := client.Consume(ctx, []string{topic}, handler{}); err != nil {
			fail(err)
		}
		time.Sleep(300 * time.Millisecond)
	}
	client.Close()
}

func saramaPartition(ctx context.Context, bootstrap, topic, id string) {
	client, err := sarama.NewConsumer(strings.Split(bootstrap, ","), saramaConfig(id))
	if err != nil {
		fail(err)
		return
	}
	partition, err := client.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		fail(err)
		return
	}
	messages, failures := partition.Messages(), partition.Errors()
	for {
		select {
		case m, ok := <-messages:
			if !ok {
				say("I", "channel closed")
				messages = nil
				continue
			}
			say("R", m.Offset, string(m.Value), m.Partition)
		case err, ok := <-failures:
			if !ok {
				failures = nil
				continue
			}
			fail(err)
		case <-ctx.Done():
			return
		}
	}
}

func segmentio(ctx context.Context, library, bootstrap, topic, id, group string) {
	config := kafka.ReaderConfig{Brokers: strings.Split(bootstrap, ","), Topic: topic, StartOffset: kafka.FirstOffset,
		MaxWait: 500 * time.Millisecond, Dialer: &kafka.Dialer{ClientID: id, Timeout: 5 * time.Second},
		ErrorLogger: kafka.LoggerFunc(func(format string, words ...any) { say("I", "log", fmt.Sprintf(format, words...)) })}
	if library == "kafka-go" {
		config.GroupID = group
	}
	reader := kafka.NewReader(config)
	for ctx.Err() == nil {
		m, err := reader.ReadMessage(ctx)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			fail(err)
			continue
		}
		say("R", m.Offset, string(m.Value), m.Partition)
	}
	reader.Close()
}
