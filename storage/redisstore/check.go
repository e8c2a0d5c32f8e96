package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// checkClient refuses clients that do not always ask the master of a key.
func (s *Store) checkClient() error {
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		if o := c.Options(); o.ReadOnly || o.RouteByLatency || o.RouteRandomly {
			return errors.New("redisstore: the client reads from replicas, which show what is no longer so: leave ReadOnly, RouteByLatency and RouteRandomly off")
		}
	case *redis.Client:
	default:
		return fmt.Errorf("redisstore: a client of type %T moves keys to other servers: use *redis.Client or *redis.ClusterClient", c)
	}
	return nil
}

// check reads the settings of every master and refuses what loses money. absent
// says that masters of a cluster may be out of reach.
func (s *Store) check(ctx context.Context, absent bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return s.checkServer(ctx, s.client.(*redis.Client), false)
	}
	return c.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		err := s.checkServer(ctx, c, true)
		var network *net.OpError
		if absent && errors.As(err, &network) && network.Op == "dial" {
			return nil
		}
		return err
	})
}

// checkServer asks one server for its state and settings.
func (s *Store) checkServer(ctx context.Context, c *redis.Client, cluster bool) error {
	text, err := c.Info(ctx).Result()
	if err != nil {
		return failed("reading the server's state (INFO)", err)
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[k] = v
		}
	}
	settings := map[string]string{}
	for _, name := range []string{"appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory-policy"} {
		v, err := c.ConfigGet(ctx, name).Result()
		if err != nil {
			return fmt.Errorf("redisstore: the settings of %s cannot be read, so it is not known what it loses: allow CONFIG GET to this user: %w", c.Options().Addr, err)
		}
		settings[name] = v[name]
	}
	if err := s.judgeServer(info, settings, cluster); err != nil {
		return fmt.Errorf("redisstore: %s is refused: %w", c.Options().Addr, err)
	}
	return nil
}

// judgeServer says what has to be changed on a server, if anything.
func (s *Store) judgeServer(info, settings map[string]string, cluster bool) error {
	allowed := func(l Loss) bool { return slices.Contains(s.o.AllowLoss, l) }
	major, _, _ := strings.Cut(info["redis_version"], ".")
	version, err := strconv.Atoi(major)
	replicas, _ := strconv.Atoi(info["connected_slaves"])
	switch {
	case err != nil || version < 7:
		return fmt.Errorf("it is Redis %q: version 7 or newer is needed", info["redis_version"])
	case info["role"] != "master":
		return errors.New("it is a read-only replica: connect to the master (or turn it into one with REPLICAOF NO ONE)")
	case info["cluster_enabled"] == "1" && !cluster:
		return errors.New("it is part of a cluster: use redis.NewClusterClient")
	case info["cluster_enabled"] != "1" && cluster:
		return errors.New("it is no part of a cluster: use redis.NewClient")
	case settings["maxmemory-policy"] != "noeviction":
		return fmt.Errorf("maxmemory-policy is %q, which deletes balances when memory runs short: set maxmemory-policy noeviction", settings["maxmemory-policy"])
	case settings["appendonly"] != "yes":
		return errors.New("appendonly is off, so a restart loses everything since the last snapshot: set appendonly yes")
	case settings["appendfsync"] != "always" && settings["appendfsync"] != "everysec":
		return fmt.Errorf("appendfsync is %q, so a crash loses acknowledged commits: set appendfsync always", settings["appendfsync"])
	case settings["appendfsync"] == "everysec" && !allowed(LastSecond):
		return errors.New("appendfsync is \"everysec\", so a crash loses up to two seconds of acknowledged commits: set appendfsync always, or name redisstore.LastSecond in Options.AllowLoss")
	case settings["no-appendfsync-on-rewrite"] == "yes" && !allowed(LastSecond):
		return errors.New("no-appendfsync-on-rewrite is on, so a crash during a rewrite loses acknowledged commits: set no-appendfsync-on-rewrite no")
	case replicas > 0 && !allowed(Failover):
		return errors.New("it has replicas, and a failover to one of them loses acknowledged commits: detach them, or name redisstore.Failover in Options.AllowLoss")
	}
	return nil
}
