package judge

// Told is an event that the host's consumer was handed.
type Told struct {
	Shop     string // or the partition of what is of no merchant
	Number   int64
	Object   string
	From, To string // of a change of status, else ""
	Suspense string // the deposit that stands in suspense by it, "" = none does
	Halt     bool   // it is no step of a machine: From says nothing
}

// House is what is of no merchant in one partition: sweeps, orders of the house's own, and
// halts, each with its state.
type House struct {
	ID     string
	States map[string]string // of halts those alone that stand: Halted
}

// Halted and Lifted are the states of a halt.
const (
	Halted = "halted"
	Lifted = "lifted"
)

// heard is what the host heard of one merchant.
type heard struct {
	last   int64
	wrong  string            // the first thing that is not as it should be
	states map[string]string // by object
}

// Heard is told what the host's consumer was handed. An event may come again after a
// process died.
func (j *Judge) Heard(t Told) {
	if t.Suspense != "" {
		j.alerts[t.Shop+"/"+t.Suspense] = true
	}
	h := j.hosts[t.Shop]
	if h == nil {
		h = &heard{states: map[string]string{}}
		j.hosts[t.Shop] = h
	}
	if t.Number <= h.last {
		return
	}
	note := func(why string) {
		if h.wrong == "" {
			h.wrong = why
		}
	}
	if t.Number != h.last+1 {
		note("a number is left out")
	}
	h.last = t.Number
	if t.From == t.To {
		return
	}
	if !t.Halt && (t.From != "" && h.states[t.Object] != t.From || t.From == "" && h.states[t.Object] != "") {
		note(t.Object + " was " + h.states[t.Object] + " and is told to go from " + t.From + " to " + t.To)
	}
	h.states[t.Object] = t.To
}

// inOrder asks whether the host heard the events of a partition in order, and returns what it
// heard. Where a store was restored or lost commits, calm is false, and nothing is promised.
func (j *Judge) inOrder(s *Scene, promise, partition string) (h *heard, calm bool) {
	calm = !s.Weather.Restored && !s.Weather.Lossy
	if h = j.hosts[partition]; h == nil {
		h = &heard{}
	}
	j.ask(promise, calm && h.last > 1, h.wrong == "", "of %s the host heard %d events: %s", partition, h.last, h.wrong)
	return h, calm
}

// listened is I27-host.
func (j *Judge) listened(s *Scene, shop *Shop) {
	h, calm := j.inOrder(s, "I27-host", shop.ID)
	ask := func(id, state string) {
		j.ask("I27-host", calm, h.states[id] == state, "%s is %q, and the host heard last that it is %q", id, state, h.states[id])
	}
	for i := range shop.Payments {
		ask(shop.Payments[i].ID, shop.Payments[i].Status)
	}
	for i := range shop.Payouts {
		ask(shop.Payouts[i].ID, shop.Payouts[i].Status)
	}
	for i := range shop.Transfers {
		ask(shop.Transfers[i].ID, shop.Transfers[i].Status)
	}
}

// listenedTo is I27-house.
func (j *Judge) listenedTo(s *Scene, house *House) {
	h, calm := j.inOrder(s, "I27-house", house.ID)
	for _, id := range sorted(house.States) {
		j.ask("I27-house", calm, h.states[id] == house.States[id], "%s of %s is %q, and the host heard last that it is %q", id, house.ID, house.States[id], h.states[id])
	}
	for _, id := range sorted(h.states) {
		_, there := house.States[id]
		j.ask("I27-house", calm, there || h.states[id] == Lifted, "the host heard last that %s of %s is %q, and there is none", id, house.ID, h.states[id])
	}
}
