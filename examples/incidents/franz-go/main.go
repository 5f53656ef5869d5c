// A consumer of franz-go that keeps the topic id which it was told first, as its default is (franz-go #908).
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(os.Args[1], ",")...), kgo.ClientID("radio"),
		kgo.ConsumeTopics(os.Args[2]), kgo.KeepRetryableFetchErrors())
	if err != nil {
		panic(err)
	}
	for {
		fetches := client.PollFetches(context.Background())
		fetches.EachError(func(topic string, partition int32, err error) {
			fmt.Println(topic, partition, err)
			time.Sleep(500 * time.Millisecond) // it would ask again at once
		})
	}
}
