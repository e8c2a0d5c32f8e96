package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/user"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/storage"
)

// House is what commands work on.
type House struct {
	// App is open. It need not run: no command waits for a worker of its own.
	App *cryptopay.App
	// Auth has applications and API keys; nil = the host has none.
	Auth *auth.Service
	// Reseal seals with the newest key what the host itself has sealed, beside the App and
	// Auth. Nil = nothing.
	Reseal func(ctx context.Context) error
	// Keep are the things that have to be saved beside the store, such as its keys.
	Keep []string
	// Tables are all that the store holds rows of, for copy: those of the library and the
	// host's own.
	Tables []*storage.Table
	// OpenStore connects to another store by its name, for copy; nil = there is no copy. With
	// create it makes what is missing of the schema, also of move.Positions; without, it makes
	// nothing, and returns nil where there is no store or none with a schema. The store is
	// open with Tables and move.Positions. No error repeats a password.
	OpenStore func(ctx context.Context, name string, create bool) (storage.Store, error)
	// Close is called when a command ends. Nil = nothing is to be closed.
	Close func() error
}

// Command is the operator's command with its subcommands. A subcommand checks its flags and
// arguments, opens the House, and closes it at its end. If open fails, open itself closes what
// it has opened. An error of Run says what to do. The program that mounts the command prints
// it and chooses the exit code: no error is a cli.ExitCoder.
func Command(open func(ctx context.Context) (*House, error)) *cli.Command {
	c := commands{open: open}
	root := group("operator", "Show and mend what the payment service keeps.",
		c.tenants(), c.applications(), c.keys(),
		c.withdrawals(), c.policies(), c.suspense(), c.house(), c.refills(), c.webhooks(), c.deliveries(), c.events(),
		c.halt(), c.lift(), c.halts(), c.operations(), c.audit(),
		c.networks(), c.transactions(), c.nonces(), c.sweeps(),
		c.verify(), c.recount(), c.journal(), c.reseal(),
		c.copy(), c.backup(), c.restore(),
	)
	root.Description = "Results go to standard output. A command that writes needs -reason. " +
		"The exit code is not 0 where a command fails, and where verify or a check finds something."
	root.Flags = []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON in place of tables"}}
	root.ExitErrHandler = func(context.Context, *cli.Command, error) {} // whoever runs it exits
	return root
}

// commands makes them.
type commands struct {
	open func(ctx context.Context) (*House, error)
}

// leaf is a command that does something.
type leaf struct {
	name  string
	usage string // one sentence
	about string // more of it, "" = none
	args  []string
	flags []cli.Flag
	// writes has -reason and -by asked for, and dry -dry-run offered.
	writes, dry bool
	do          func(ctx context.Context, s *session) error
}

// session is one run of a leaf.
type session struct {
	*House
	cmd  *cli.Command
	call cryptopay.Call
}

const hint = "see -help"

func (c commands) leaf(l leaf) *cli.Command {
	cmd := &cli.Command{
		Name: l.name, Usage: l.usage, Description: l.about, Flags: l.flags, HideHelpCommand: true, OnUsageError: usageError,
		ArgsUsage: strings.Join(l.args, " "),
	}
	if l.writes {
		cmd.Flags = append(cmd.Flags,
			&cli.StringFlag{Name: "reason", Usage: "why: it is kept (required)"},
			&cli.StringFlag{Name: "by", Usage: "who: it is kept", DefaultText: "your account on this machine"})
	}
	if l.dry {
		cmd.Flags = append(cmd.Flags, &cli.BoolFlag{Name: "dry-run", Usage: "check everything, write nothing"})
	}
	cmd.Action = func(ctx context.Context, cmd *cli.Command) (err error) {
		s := &session{cmd: cmd, call: cryptopay.Call{By: cmd.String("by"), Reason: strings.TrimSpace(cmd.String("reason")), DryRun: cmd.Bool("dry-run")}}
		if err := s.check(&l); err != nil {
			return err
		}
		if s.House, err = c.open(ctx); err != nil {
			return err
		}
		if s.Close != nil {
			defer func() { err = errors.Join(err, s.Close()) }()
		}
		return advise(l.do(ctx, s))
	}
	return cmd
}

// check refuses a command line that cannot be meant.
func (s *session) check(l *leaf) error {
	if got := s.cmd.NArg(); got != len(l.args) {
		want := "no arguments"
		if len(l.args) > 0 {
			want = strings.Join(l.args, " ")
		}
		return fmt.Errorf("%s takes %s, and got %d: %s", s.cmd.FullName(), want, got, hint)
	}
	if !l.writes {
		return nil
	}
	if s.call.Reason == "" {
		return errors.New("-reason is required: say why, it is kept")
	}
	if s.call.By == "" {
		u, err := user.Current()
		if err != nil || u.Username == "" {
			return errors.New("-by is required: say who you are, it is kept")
		}
		s.call.By = u.Username
	}
	return nil
}

// need is a flag's value, which must be given.
func (s *session) need(flag string) (string, error) {
	v := s.cmd.String(flag)
	if v == "" {
		return "", fmt.Errorf("-%s is required: %s", flag, hint)
	}
	return v, nil
}

// did writes to the log what a command has done that the store keeps no record of.
func (s *session) did(ctx context.Context, tenant, object string) {
	s.App.Config().Log.LogAttrs(ctx, slog.LevelWarn, "operator_commanded",
		slog.String("command", s.cmd.FullName()), slog.String("by", s.call.By), slog.String("reason", s.call.Reason),
		slog.String("tenant", tenant), slog.String("object", object))
}

// begins records in the audit log of a partition what a command is about to do, and tells the
// host of it. What is refused afterwards stays recorded as well. Of dead letters it does not
// tell: whoever discards them would make another of a consumer that fails at everything.
func (s *session) begins(ctx context.Context, kind string, p storage.Partition, object string) error {
	cfg := s.App.Config()
	tenant, ok := strings.CutPrefix(string(p), string(storage.Tenant("")))
	if !ok {
		tenant = ""
	}
	tell := kind != audit.RetryEvents && kind != audit.DropEvents
	return storage.Decide(ctx, cfg.Store, func(ctx context.Context) (storage.Change, error) {
		c := storage.Change{ID: cfg.NewID(), Partition: p}
		return c, s.App.Audit(ctx, &c, audit.Act{Kind: kind, By: s.call.By, Reason: s.call.Reason, Tenant: tenant, Object: object, Tell: tell})
	})
}

// group has subcommands, and shows them.
func group(name, usage string, of ...*cli.Command) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, Commands: of, HideHelpCommand: true, OnUsageError: usageError,
		Action: func(_ context.Context, cmd *cli.Command) error {
			if arg := cmd.Args().First(); arg != "" {
				return fmt.Errorf("%s has no command %q: %s", cmd.FullName(), arg, hint)
			}
			return cli.ShowSubcommandHelp(cmd)
		},
	}
}

func usageError(_ context.Context, cmd *cli.Command, err error, _ bool) error {
	return fmt.Errorf("%s: %w: %s", cmd.FullName(), err, hint)
}
