package main

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cryptopay-go/cryptopay/httpapi"
	appmetrics "github.com/cryptopay-go/cryptopay/observe/prometheus"
)

// metrics are what /metrics shows, in a registry of this program's own.
type metrics struct {
	registry *prometheus.Registry
	app      *appmetrics.Collector // the App's own figures
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(), app: appmetrics.New(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cryptopay_requests_total", Help: "Answered requests by operation and status.",
		}, []string{"operation", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "cryptopay_request_seconds", Help: "How long requests took, by operation.", Buckets: prometheus.DefBuckets,
		}, []string{"operation"}),
	}
	m.registry.MustRegister(m.app, m.requests, m.duration, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) observe(o httpapi.Observation) {
	name := o.Route
	if name == "" {
		name = "unknown"
	}
	m.requests.WithLabelValues(name, strconv.Itoa(o.Status)).Inc()
	m.duration.WithLabelValues(name).Observe(o.Duration.Seconds())
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
