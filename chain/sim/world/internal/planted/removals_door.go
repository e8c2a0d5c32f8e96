package planted

// Credentials, limits, and orders edited in the database.
var doorRemovals = []Bug{}
