package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/webhook"
)

func (c commands) deliveries() *cli.Command {
	statuses := []webhook.Status{webhook.StatusPending, webhook.StatusFailed, webhook.StatusSkipped, webhook.StatusDelivered}
	return group("deliveries", "Webhooks to merchants.",
		c.leaf(leaf{
			name: "list", usage: "List webhooks that wait or failed, the oldest of a tenant first.",
			flags: []cli.Flag{oneOrAll(), &cli.StringSliceFlag{Name: "status", Usage: "which: pending, failed, skipped, delivered", DefaultText: "pending,failed"}},
			do: func(ctx context.Context, s *session) error {
				wanted := statuses[:2]
				if named := s.cmd.StringSlice("status"); len(named) > 0 {
					wanted = nil
					for _, name := range named {
						if !slices.Contains(statuses, webhook.Status(name)) {
							return fmt.Errorf("-status must be one of %v: not %q", statuses, name)
						}
						wanted = append(wanted, webhook.Status(name))
					}
				}
				return s.each(ctx, func(tenant string) (out records, err error) {
					for _, status := range wanted {
						rows, err := pages(func(limit, offset int) ([]storage.Row, error) {
							return s.App.Webhooks.List(ctx, tenant, status, limit, offset)
						})
						if err != nil {
							return nil, err
						}
						for _, r := range rows {
							e := webhook.Events.Value(r)
							again := r.Due
							if status != webhook.StatusPending {
								again = e.Done
							}
							out = append(out, record{
								{"id", r.ID},
								{"tenant", tenant},
								{"status", string(e.Status)},
								{"type", e.Type},
								{"created_at", e.Created},
								{"attempts", e.Attempts},
								{"response", e.Response},
								{"due_or_ended", again},
								{"error", e.Error},
							})
						}
					}
					return out, nil
				})
			},
		}),
		c.leaf(leaf{
			name: "resend", usage: "Send a webhook again, from its first attempt.", args: []string{"ID"}, flags: []cli.Flag{ofTenant()}, writes: true,
			do: func(ctx context.Context, s *session) error {
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				id := s.cmd.Args().First()
				if err := s.begins(ctx, audit.Resend, storage.Tenant(tenant), id); err != nil {
					return err
				}
				ok, err := s.App.Webhooks.Replay(ctx, tenant, id)
				if err != nil {
					return err
				}
				if !ok {
					return fmt.Errorf("tenant %s has no webhook %q: `deliveries list` shows those that there are", tenant, id)
				}
				s.did(ctx, tenant, id)
				return s.one(record{{"resent", id}})
			},
		}),
	)
}

func (c commands) events() *cli.Command {
	flags := func() []cli.Flag {
		return []cli.Flag{
			&cli.StringFlag{Name: "stream", Usage: "as `events list` shows it: tenant/ID, network/CODE or system (required)"},
			&cli.StringFlag{Name: "consumer", Usage: "name of the consumer (required)"},
		}
	}
	decide := func(name, kind, usage, done string, do func(ctx context.Context, e *stream.Service, p storage.Partition, consumer, object string) (int, error)) *cli.Command {
		return c.leaf(leaf{
			name: name, usage: usage, args: []string{"OBJECT"}, flags: flags(), writes: true,
			do: func(ctx context.Context, s *session) error {
				p, err := s.need("stream")
				if err != nil {
					return err
				}
				consumer, err := s.need("consumer")
				if err != nil {
					return err
				}
				object := s.cmd.Args().First()
				if dead, err := s.App.Events.Dead(ctx, storage.Partition(p), consumer, 0, 1); err != nil {
					return err
				} else if len(dead) > 0 { // of a stream that there is
					if err := s.begins(ctx, kind, storage.Partition(p), consumer+" "+object); err != nil {
						return err
					}
				}
				n, err := do(ctx, s.App.Events, storage.Partition(p), consumer, object)
				if n > 0 {
					tenant, _ := strings.CutPrefix(p, string(storage.Tenant("")))
					s.did(ctx, tenant, consumer+" "+object)
				}
				if err != nil {
					return err
				}
				return s.one(record{{done, n}})
			},
		})
	}
	return group("events", "What the host's own consumers did not handle.",
		c.leaf(leaf{
			name: "consumers", usage: "Show how far each consumer is, what waits since when, and what fails.",
			do: func(ctx context.Context, s *session) error {
				states, err := s.App.Events.States(ctx)
				if err != nil {
					return err
				}
				var out records
				for _, st := range states {
					failing := records{}
					for _, f := range st.Failing {
						failing = append(failing, record{{"partition", string(f.Partition)}, {"number", f.Number}, {"tries", f.Tries}, {"again", f.Again}, {"error", f.Error}})
					}
					out = append(out, record{{"consumer", st.Consumer}, {"here", st.Here}, {"behind", st.Behind}, {"oldest", st.Oldest}, {"failing", failing}})
				}
				return s.list(out)
			},
		}),
		c.leaf(leaf{
			name: "list", usage: "List dead letters of all streams: events that a consumer did not handle.",
			do: func(ctx context.Context, s *session) error {
				states, err := s.App.Events.States(ctx)
				if err != nil {
					return err
				}
				var out records
				var unread storage.RowErrors
				for p, err := range cryptopay.Partitions(ctx, s.App.Config().Store) {
					if err := unread.Take(err); err != nil {
						return err
					}
					for _, st := range states {
						some, err := s.dead(ctx, p, st.Consumer)
						if err != nil {
							return err
						}
						out = append(out, some...)
					}
				}
				return errors.Join(s.list(out), unread.With(nil))
			},
		}),
		decide("retry", audit.RetryEvents, "Have the dead letters of an object handled again, in their order. This program must have the consumer.", "handled",
			func(ctx context.Context, e *stream.Service, p storage.Partition, consumer, object string) (int, error) {
				return e.Retry(ctx, p, consumer, object)
			}),
		decide("discard", audit.DropEvents, "Forget the dead letters of an object: the consumer never handles those events.", "discarded",
			func(ctx context.Context, e *stream.Service, p storage.Partition, consumer, object string) (int, error) {
				return e.Discard(ctx, p, consumer, object)
			}),
	)
}

// dead are the dead letters of a consumer in a stream.
func (s *session) dead(ctx context.Context, p storage.Partition, consumer string) (out records, err error) {
	after := int64(0)
	all, err := pages(func(limit, _ int) ([]stream.DeadLetter, error) {
		page, err := s.App.Events.Dead(ctx, p, consumer, after, limit)
		if len(page) > 0 {
			after = page[len(page)-1].Number
		}
		return page, err
	})
	for _, d := range all {
		out = append(out, record{
			{"consumer", d.Consumer}, {"stream", string(p)}, {"object", d.Object}, {"number", d.Number}, {"kind", d.Kind}, {"since", d.At}, {"error", d.Error},
		})
	}
	return out, err
}
