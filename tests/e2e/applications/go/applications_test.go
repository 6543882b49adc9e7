// Package applications has go-redis, as programs in Go use it, against the nodes of a rack.
package applications

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

// nodes returns a client for every node, on an empty store.
func nodes(t *testing.T) []*redis.Client {
	var clients []*redis.Client
	for _, url := range strings.Fields(os.Getenv("NODES")) {
		options, err := redis.ParseURL(url)
		check(t, err)
		client := redis.NewClient(options)
		t.Cleanup(func() { client.Close() })
		clients = append(clients, client)
	}
	check(t, clients[0].FlushAll(ctx).Err())
	return clients
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same[T comparable](t *testing.T, found, wanted T) {
	t.Helper()
	if found != wanted {
		t.Fatalf("%v instead of %v", found, wanted)
	}
}

func TestValues(t *testing.T) {
	n := nodes(t)
	check(t, n[0].Set(ctx, "k", "v", time.Minute).Err())
	same(t, n[1].Get(ctx, "k").Val(), "v")
	same(t, errors.Is(n[2].Get(ctx, "absent").Err(), redis.Nil), true)
	check(t, n[1].HSet(ctx, "h", "name", "Ada", "born", 1815).Err())
	var person struct {
		Name string `redis:"name"`
		Born int    `redis:"born"`
	}
	check(t, n[2].HGetAll(ctx, "h").Scan(&person))
	same(t, person.Born, 1815)
	check(t, n[0].ZAdd(ctx, "z", redis.Z{Score: 1, Member: "one"}, redis.Z{Score: 2, Member: "two"}).Err())
	same(t, n[1].ZRangeWithScores(ctx, "z", 0, -1).Val()[1], redis.Z{Score: 2, Member: "two"})
	check(t, n[2].SAdd(ctx, "s", 1, 2, 3).Err())
	same(t, n[0].SIsMember(ctx, "s", 2).Val(), true)
}

func TestPipelinesAndTransactions(t *testing.T) {
	n := nodes(t)
	answers, err := n[0].Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for range [100]struct{}{} {
			pipe.Incr(ctx, "n")
		}
		return nil
	})
	check(t, err)
	same(t, answers[99].(*redis.IntCmd).Val(), 100)

	// Optimistic transactions of all nodes on one key lose nothing.
	var group sync.WaitGroup
	for _, client := range n {
		group.Add(1)
		go func() {
			defer group.Done()
			for done := 0; done < 20; {
				err := client.Watch(ctx, func(tx *redis.Tx) error {
					value, err := tx.Get(ctx, "n").Int()
					if err != nil {
						return err
					}
					_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
						pipe.Set(ctx, "n", value+1, 0)
						return nil
					})
					return err
				}, "n")
				if err == nil {
					done++
				} else if !errors.Is(err, redis.TxFailedErr) {
					t.Error(err)
					return
				}
			}
		}()
	}
	group.Wait()
	same(t, n[0].Get(ctx, "n").Val(), "160")
}

func TestMessages(t *testing.T) {
	n := nodes(t)
	subscription := n[1].PSubscribe(ctx, "new*")
	defer subscription.Close()
	_, err := subscription.Receive(ctx)
	check(t, err)
	same(t, n[2].Publish(ctx, "news", "hello").Val(), 1)
	message := <-subscription.Channel()
	same(t, message.Channel+" "+message.Pattern+" "+message.Payload, "news new* hello")
}

func TestScripts(t *testing.T) {
	n := nodes(t)
	take := redis.NewScript(`
		local n = tonumber(redis.call('get', KEYS[1]) or '0')
		if n >= tonumber(ARGV[1]) then return redis.error_reply('FULL no more') end
		return redis.call('incr', KEYS[1])`)
	for turn := 1; turn <= 6; turn++ {
		found, err := take.Run(ctx, n[turn%3], []string{"n"}, 5).Int()
		if turn <= 5 {
			check(t, err)
			same(t, found, turn)
		} else if err == nil || err.Error() != "FULL no more" {
			t.Fatal(err)
		}
	}
}

func TestBlockingPops(t *testing.T) {
	n := nodes(t)
	popped := make(chan []string)
	go func() { popped <- n[1].BLPop(ctx, time.Minute, "chores").Val() }()
	check(t, n[0].RPush(ctx, "chores", "wash").Err())
	same(t, (<-popped)[1], "wash")
}

func TestStreams(t *testing.T) {
	n := nodes(t)
	check(t, n[0].XGroupCreateMkStream(ctx, "s", "team", "$").Err())
	read := make(chan []redis.XStream)
	go func() {
		read <- n[1].XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: "team", Consumer: "ada", Streams: []string{"s", ">"}, Block: time.Minute,
		}).Val()
	}()
	id, err := n[2].XAdd(ctx, &redis.XAddArgs{Stream: "s", Values: []string{"k", "v"}}).Result()
	check(t, err)
	same(t, (<-read)[0].Messages[0].Values["k"].(string), "v")
	same(t, n[0].XPending(ctx, "s", "team").Val().Count, 1)
	same(t, n[0].XAck(ctx, "s", "team", id).Val(), 1)
	same(t, n[2].XLen(ctx, "s").Val(), 1)
}
