package planted

// What goes wrong with webhooks.
var webhookBugs = []Bug{
	{
		ID: "gone-deposit-untold", File: "payment/event.go",
		Old:  `d.ShownStatus() != was.ShownStatus() || d.ShownRole()`,
		New:  `d.ShownStatus() != was.ShownStatus() && d.ShownStatus() != ShownGone || d.ShownRole()`,
		What: "payment_deposit does not tell that a deposit is gone",
	},
	{
		ID: "schedule-starts-over", File: "webhook/deliver.go",
		Old:  `return s.change(row, e, now.Add(schedule[e.Attempts-1]))`,
		New:  `return s.change(row, Events.Value(row), now.Add(schedule[e.Attempts-1]))`,
		What: "failed attempts are not counted",
	},
	{
		ID: "one-breaker-for-all", File: "webhook/breaker.go",
		Old:  "x := b.all[k]\n	if x == nil || x.pause == 0 {",
		New:  "x := b.all[k]\n	for _, other := range b.all {\n		if other.pause > 0 {\n			x = other\n		}\n	}\n	if x == nil || x.pause == 0 {",
		What: "while one host does not answer the webhooks of all merchants are held back",
	},
	{
		ID: "one-attempt-less", File: "webhook/deliver.go",
		Old:  `if e.Attempts > len(schedule) {`,
		New:  `if e.Attempts >= len(schedule) {`,
		What: "a delivery is given up after five attempts instead of six",
	},
	{
		ID: "any-answer-delivers", File: "webhook/deliver.go",
		Old:  "if r.Err == nil {\n",
		New:  "if r.Err == nil || r.Status > 0 {\n",
		What: "an event counts as delivered whatever the receiver answers",
	},
	{
		ID: "body-written-anew", File: "webhook/deliver.go",
		Old:  `now, []byte(j.event.Body))`,
		New:  `now, []byte(strings.ReplaceAll(j.event.Body, ",", ", ")))`,
		What: "what is sent is not byte for byte what was stored",
	},
	{
		ID: "endpoint-of-another-tenant", File: "webhook/deliver.go",
		Old:  `ep := endpoints[row.Partition]`,
		New:  `ep := endpoints[rows[0].Partition]`,
		What: "all events of a batch go to the endpoint of the first",
	},
	{
		ID: "signature-over-other-bytes", File: "webhook/sign.go",
		Old:  `append(strconv.AppendInt(append([]byte(id), '.'), at.Unix(), 10), '.')`,
		New:  `append(strconv.AppendInt(append([]byte(id), ':'), at.Unix(), 10), '.')`,
		What: "what is signed is not what the documents say, by sender and verifier alike",
	},
	{
		ID: "short-retry", File: "webhook/deliver.go",
		Old:  `var schedule = []time.Duration{time.Minute, 5 * time.Minute,`,
		New:  `var schedule = []time.Duration{time.Minute, 5 * time.Second,`,
		What: "the second retry comes after seconds",
	},
}
