package testenv

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// Promtool is the path of Prometheus' own program to test rules.
func Promtool(t testing.TB) string {
	t.Helper()
	const env = "CRYPTOPAY_PROMTOOL"
	path := find(env, "promtool")
	if path == "" {
		missing(t, "promtool", env)
	}
	return path
}

// Prometheus starts a Prometheus that scrapes a target, "host:port", each second, and has
// the rules of a file.
func Prometheus(t testing.TB, target, rules string) *Process {
	t.Helper()
	const env = "CRYPTOPAY_PROMETHEUS"
	path := find(env, "prometheus")
	if path == "" {
		missing(t, "prometheus", env)
	}
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\n"+
		"scrape_configs: [{job_name: gateway, scrape_timeout: 1s, static_configs: [{targets: [%q]}]}]\n", rules, target)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, spec{
		name: "prometheus", path: path, ready: prometheusReady,
		args: func(port int, dir string) []string {
			return []string{
				"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address(port), "--log.level=warn",
			}
		},
	})
}

func prometheusReady(ctx context.Context, port int) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address(port)+"/-/ready", nil)
	if err != nil {
		return err
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_ = a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("prometheus: status %d", a.StatusCode)
	}
	return nil
}
