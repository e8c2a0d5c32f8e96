package planted

// Lines that the App lacks.
var rootOmissions = []Bug{
	{
		ID: "omit-app-worker-recover", File: "watch.go",
		Old: `		if p := recover(); p != nil {
			err = fmt.Errorf("cryptopay: worker %s panicked: %v", w.Name, p)
		}
`,
		New: `		_ = fmt.Errorf
`,
		What:    "a panic of one worker ends the process",
		Package: ".", Test: "TestC04_PoisonedWorkerStopsNobody",
		Ends: true,
	},
	{
		ID: "omit-app-clock-check", File: "watch.go",
		Old: `			if err = s.a.skew.check(ctx); err == nil {
				n, err = step(ctx)
			}`,
		New:     "\t\t\tn, err = step(ctx)",
		What:    "a process whose clock is off claims work",
		Package: ".", Test: "TestT01_RunClaimsNothingWhileItsClockIsOff/ahead",
	},
	{
		ID: "omit-app-drain", File: "watch.go",
		Old: `	if a.waits(over, a.cfg.Grace) {
		return nil
	}
`,
		New:     "",
		What:    "Run does not wait for steps in flight when it ends",
		Package: ".", Test: "TestFS01_RunEndsAlthoughAStepHangs/heeds_its_context",
	},
	{
		ID: "omit-app-retention-of-failed", File: "retention.go",
		Old: `		{webhook.StatusFailed, keep.FailedEvents},
`,
		New:     "",
		What:    "failed events are kept for ever",
		Package: ".", Test: "TestX03_RetentionLosesToAReplay",
	},
	{
		ID: "omit-app-round-second-page", File: "round.go",
		Old: `	if full {
		return max(worked, 1), unread.With(nil)
	}
`,
		New:     "	_ = full\n",
		What:    "journals of tenants beyond the first two hundred are never sealed",
		Package: ".", Test: "TestL12_EveryTenantIsSealed",
	},
	{
		ID: "omit-app-pause-after-error", File: "watch.go",
		Old: `			pause = min(2*pause, time.Minute)
			_ = s.a.cfg.Clock.Wait(s.ctx, pause) // the loop sees the end`,
		New:     "\t\t\tpause = w.Every",
		What:    "a worker that fails is called again at once",
		Package: ".", Test: "TestC04_PoisonedWorkerStopsNobody",
	},
}
