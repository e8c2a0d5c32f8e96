package redisstore

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"
)

// A client connects again by itself, and what answers then may be another
// server, or the same with other settings. So each new connection raises a
// doubt, and no commit is acknowledged before the settings were read again. (A
// connection over which a server says READONLY is one that the client closes.)

// dials sees new connections. It changes nothing that passes through it.
type dials struct{ s *Store }

var _ redis.Hook = dials{}

// DialHook implements redis.Hook.
func (d dials) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err == nil {
			d.s.doubts.Add(1)
		}
		return conn, err
	}
}

// ProcessHook implements redis.Hook.
func (dials) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (dials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// watch is called once, by the first Open.
func (s *Store) watch(ctx context.Context) error {
	see := func(_ context.Context, c *redis.Client) error {
		c.AddHook(dials{s})
		return nil
	}
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		c.OnNewNode(func(c *redis.Client) { c.AddHook(dials{s}) })
		return failed("opening", c.ForEachMaster(ctx, see)) // those that it knows
	case *redis.Client:
		return see(ctx, c)
	}
	return nil
}

// settled reads the settings again where there is doubt. Others wait for whoever
// does so. A master of a cluster that cannot be reached concerns nobody but those
// whose partitions it has; once it can, that is a new connection.
func (s *Store) settled(ctx context.Context) error {
	if s.settledAt.Load() >= s.doubts.Load() {
		return nil
	}
	s.checking.Lock()
	defer s.checking.Unlock()
	now := s.doubts.Load() // what is raised from here on needs another look
	if s.settledAt.Load() >= now {
		return nil
	}
	err := s.check(ctx, true)
	if err == nil {
		s.settledAt.Store(now)
	}
	return err
}
