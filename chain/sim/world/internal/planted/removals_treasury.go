package planted

// What sweeps cost, and prices.
var treasuryRemovals = []Bug{}
