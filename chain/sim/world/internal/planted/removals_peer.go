package planted

// Peers that never end, and fair delivery of webhooks.
var peerRemovals = []Bug{}
