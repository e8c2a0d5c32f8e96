// Package rules holds alerts.yml, the rules for Prometheus, and board.json, the board for
// Grafana, over the metrics of package observe. It has no code; its tests hold each rule to
// what the simulator does to an App, to the runbook, and to a Prometheus.
package rules
