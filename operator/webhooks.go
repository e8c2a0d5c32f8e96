package operator

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v3"

	"github.com/cryptopay-go/cryptopay/webhook"
)

func (c commands) webhooks() *cli.Command {
	show := func(v *webhook.Settings) record {
		return record{{"url", v.URL}, {"events", v.Events}, {"masked_secret", v.MaskedSecret}, {"created_at", v.Created}, {"updated_at", v.Updated}}
	}
	// edit changes the settings of the flag's tenant, and records it.
	edit := func(ctx context.Context, s *session, p webhook.Patch) (webhook.Settings, error) {
		tenant, err := s.tenant(ctx)
		if err != nil {
			return webhook.Settings{}, err
		}
		p.By = webhook.By(s.who())
		v, err := s.App.Webhooks.Edit(ctx, tenant, p)
		if err == nil {
			s.did(ctx, tenant, "webhooks")
		}
		return v, err
	}
	return group("webhooks", "Where the webhooks of tenants go, and what signs them.",
		c.leaf(leaf{
			name: "show", usage: "Show the settings of a tenant, without its secret. No events are all.", flags: []cli.Flag{ofTenant()},
			do: func(ctx context.Context, s *session) error {
				tenant, err := s.tenant(ctx)
				if err != nil {
					return err
				}
				v, err := s.App.Webhooks.Get(ctx, tenant)
				if err != nil {
					return err
				}
				return s.one(show(&v))
			},
		}),
		c.leaf(leaf{
			name: "set", usage: "Set the URL or the events of a tenant.", writes: true,
			flags: []cli.Flag{
				ofTenant(),
				&cli.StringFlag{Name: "url", Usage: "where its webhooks go", DefaultText: "as it is"},
				&cli.StringSliceFlag{Name: "events", Usage: "types that it gets, or all", DefaultText: "as they are"},
			},
			do: func(ctx context.Context, s *session) error {
				var p webhook.Patch
				if s.cmd.IsSet("url") {
					url := s.cmd.String("url")
					p.URL = &url
				}
				if s.cmd.IsSet("events") {
					events := s.cmd.StringSlice("events")
					if len(events) == 1 && events[0] == "all" {
						events = []string{}
					}
					p.Events = &events
				}
				if p.URL == nil && p.Events == nil {
					return errors.New("-url or -events is required: " + hint)
				}
				v, err := edit(ctx, s, p)
				if err != nil {
					return err
				}
				return s.one(show(&v))
			},
		}),
		c.leaf(leaf{
			name: "rotate", usage: "Make a new secret. It is shown now, and never again. The one before also signs for 24 hours.", writes: true,
			flags: []cli.Flag{ofTenant(), &cli.BoolFlag{Name: "end-previous", Usage: "the one before signs nothing any more: it has leaked"}},
			do: func(ctx context.Context, s *session) error {
				raw := make([]byte, 32)
				if _, err := io.ReadFull(s.App.Config().Random, raw); err != nil {
					return fmt.Errorf("no randomness for a secret: %w", err)
				}
				secret := base64.RawURLEncoding.EncodeToString(raw)
				v, err := edit(ctx, s, webhook.Patch{Secret: &secret, EndPrevious: s.cmd.Bool("end-previous")})
				if err != nil {
					return err
				}
				return s.one(append(show(&v), field{"secret", secret}))
			},
		}),
		c.leaf(leaf{
			name: "end-previous", usage: "End the secret before the last rotation: it signs nothing any more.", flags: []cli.Flag{ofTenant()}, writes: true,
			do: func(ctx context.Context, s *session) error {
				v, err := edit(ctx, s, webhook.Patch{EndPrevious: true})
				if err != nil {
					return err
				}
				return s.one(show(&v))
			},
		}),
	)
}
