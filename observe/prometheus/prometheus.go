// Package prometheus shows what an operator watches of an App to a Prometheus server: the
// metrics of package observe, read at each scrape, and how long steps of workers take.
//
// It promises that a scrape ends within about 5 seconds whatever hangs, and that nothing is
// read between scrapes.
package prometheus

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/observe"
)

// Collector is a prometheus.Collector, and a cryptopay.Observer. It is safe for concurrent
// use.
type Collector struct {
	app   atomic.Pointer[cryptopay.App]
	steps *prometheus.HistogramVec
	descs map[string]*prometheus.Desc
}

var (
	_ prometheus.Collector = (*Collector)(nil)
	_ cryptopay.Observer   = (*Collector)(nil)
)

// New makes a Collector that shows nothing yet. Give it to Config.Observer, call Watch with
// the App that was made of it, and register it.
func New() *Collector {
	c := &Collector{
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: observe.Steps, Help: observe.StepsHelp, Buckets: observe.Buckets}, []string{"worker"}),
		descs: map[string]*prometheus.Desc{},
	}
	for _, m := range observe.Metrics() {
		c.descs[m.Name] = prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
	}
	return c
}

// Watch says whose figures are shown. One Collector watches one App.
func (c *Collector) Watch(app *cryptopay.App) { c.app.Store(app) }

// Stepped implements cryptopay.Observer.
func (c *Collector) Stepped(worker string, took time.Duration, _ int, _ error) {
	c.steps.WithLabelValues(worker).Observe(took.Seconds())
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	c.steps.Describe(to)
	for _, d := range c.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	c.steps.Collect(to)
	app := c.app.Load()
	if app == nil {
		return
	}
	for _, s := range observe.Read(context.Background(), app) {
		kind := prometheus.GaugeValue
		if s.Counter {
			kind = prometheus.CounterValue
		}
		to <- prometheus.MustNewConstMetric(c.descs[s.Name], kind, s.Value, s.Labels...)
	}
}
