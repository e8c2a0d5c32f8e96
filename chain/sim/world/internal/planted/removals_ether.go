package planted

// Ether that comes through contracts.
var etherRemovals = []Bug{}
