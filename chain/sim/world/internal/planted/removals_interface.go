package planted

// What the REST interface shows, and what a host is asked.
var interfaceRemovals = []Bug{}
