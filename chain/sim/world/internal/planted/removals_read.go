package planted

// Reads that grow.
var readRemovals = []Bug{}
