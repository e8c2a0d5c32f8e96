package planted

// Configurations that change.
var configRemovals = []Bug{}
