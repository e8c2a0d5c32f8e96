package planted

// What strangers write into other people's transactions.
var clientRemovals = []Bug{}
