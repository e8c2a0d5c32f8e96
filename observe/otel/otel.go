// Package otel shows what an operator watches of an App through OpenTelemetry: the metrics of
// package observe, how long steps of workers take, and a trace of each payment that ends.
//
// It depends on the API of OpenTelemetry alone: the host brings its providers. It promises
// that a trace of a payment has the same id whichever process makes it, and whenever: the
// UUID of the payment.
package otel

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/observe"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

// Scope is the name of the meter and of the tracer.
const Scope = "github.com/cryptopay-go/cryptopay"

// Observer shows the figures of one App. It is a cryptopay.Observer, and safe for concurrent
// use.
type Observer struct {
	app    atomic.Pointer[cryptopay.App]
	steps  metric.Float64Histogram
	tracer trace.Tracer
}

var _ cryptopay.Observer = (*Observer)(nil)

// New makes an Observer that shows nothing yet. Give it to Config.Observer, and its Traces to
// Config.Consumers; then call Watch with the App that was made of it.
func New(meters metric.MeterProvider, traces trace.TracerProvider) (*Observer, error) {
	if meters == nil || traces == nil {
		return nil, errors.New("otel: a MeterProvider and a TracerProvider are required: go.opentelemetry.io/otel has the global ones")
	}
	o := &Observer{tracer: traces.Tracer(Scope)}
	m := meters.Meter(Scope)
	var err error
	o.steps, err = m.Float64Histogram(observe.Steps, metric.WithDescription(observe.StepsHelp), metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(observe.Buckets...))
	if err != nil {
		return nil, err
	}
	instruments := map[string]metric.Float64Observable{}
	var all []metric.Observable
	for _, of := range observe.Metrics() {
		var i metric.Float64Observable
		if of.Counter {
			i, err = m.Float64ObservableCounter(of.Name, metric.WithDescription(of.Help))
		} else {
			i, err = m.Float64ObservableGauge(of.Name, metric.WithDescription(of.Help))
		}
		if err != nil {
			return nil, err
		}
		instruments[of.Name], all = i, append(all, i)
	}
	_, err = m.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
		app := o.app.Load()
		if app == nil {
			return nil
		}
		for _, s := range observe.Read(ctx, app) {
			labels := make([]attribute.KeyValue, len(s.Labels))
			for i := range labels {
				labels[i] = attribute.String(s.Metric.Labels[i], s.Labels[i])
			}
			to.ObserveFloat64(instruments[s.Name], s.Value, metric.WithAttributes(labels...))
		}
		return nil
	}, all...)
	return o, err
}

// Watch says whose figures are shown.
func (o *Observer) Watch(app *cryptopay.App) { o.app.Store(app) }

// Stepped implements cryptopay.Observer.
func (o *Observer) Stepped(worker string, took time.Duration, _ int, _ error) {
	o.steps.Record(context.Background(), took.Seconds(), metric.WithAttributes(attribute.String("worker", worker)))
}

// Consumer is the name of the consumer that makes traces.
const Consumer = "otel-traces"

// Traces is a consumer that makes a trace of each payment that ends: a span of the whole
// payment, and in it one of each stage: created (until money was seen), seen (until it was
// final), confirmed (until it was forwarded, or was left where it is). A payment that expires
// or fails has the stages that it came to, and a status of error where it failed. Times are
// those of the stored rows.
func (o *Observer) Traces() stream.Consumer {
	return stream.Consumer{Name: Consumer, Handle: o.trace}
}

func (o *Observer) trace(ctx context.Context, _ stream.Tx, e stream.Event) error {
	c, ok := e.Body.(payment.Changed)
	app := o.app.Load()
	if !ok || c.To != payment.Completed && c.To != payment.Expired && c.To != payment.Failed {
		return nil
	}
	if app == nil {
		return errors.New("otel: Watch was not called yet")
	}
	tenant := strings.TrimPrefix(string(e.Partition), string(storage.Tenant("")))
	p, err := app.Payments.Get(ctx, tenant, c.PaymentID)
	if err != nil {
		return fmt.Errorf("otel: payment %s: %w", c.PaymentID, err)
	}
	deposits, err := app.Payments.Deposits(ctx, tenant, c.PaymentID)
	if err != nil {
		return fmt.Errorf("otel: deposits of payment %s: %w", c.PaymentID, err)
	}
	var seen time.Time
	for i := range deposits {
		if at := deposits[i].FirstSeen; seen.IsZero() || at.Before(seen) {
			seen = at
		}
	}
	ctx, whole := o.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, parent(p.ID)), "payment", trace.WithTimestamp(p.CreatedAt), trace.WithAttributes(
		attribute.String("cryptopay.payment_id", p.ID), attribute.String("cryptopay.network", p.Network),
		attribute.String("cryptopay.currency", p.Currency), attribute.String("cryptopay.status", string(c.To)),
	))
	starts := []struct {
		stage string
		at    time.Time
	}{{"created", p.CreatedAt}, {"seen", seen}, {"confirmed", p.ConfirmedAt}}
	for i, s := range starts {
		if s.at.IsZero() {
			continue
		}
		end := e.At
		for _, later := range starts[i+1:] {
			if !later.at.IsZero() {
				end = later.at
				break
			}
		}
		_, span := o.tracer.Start(ctx, s.stage, trace.WithTimestamp(s.at))
		span.End(trace.WithTimestamp(end))
	}
	if c.To == payment.Failed {
		whole.SetStatus(codes.Error, "the payment failed")
	}
	whole.End(trace.WithTimestamp(e.At))
	return nil
}

// parent names the trace of a payment: by its UUID, or a hash of what is none.
func parent(id string) trace.SpanContext {
	sum := sha256.Sum256([]byte(id))
	c := trace.SpanContextConfig{TraceFlags: trace.FlagsSampled, Remote: true}
	copy(c.SpanID[:], sum[16:])
	var err error
	if c.TraceID, err = trace.TraceIDFromHex(strings.ReplaceAll(id, "-", "")); err != nil {
		copy(c.TraceID[:], sum[:16])
	}
	return trace.NewSpanContext(c)
}
