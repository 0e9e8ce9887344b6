// Package gate is admission at the door: it decides which request runs now, which waits, and which is told at once to come back.
//
// A [Gate] holds named pools. A pool has slots (requests running), a queue (requests waiting) and a wait limit; every
// session has limits of its own over all pools. Waiting is first come first served between sessions in turn: within a
// session in order of arrival, between sessions one request each, so that no session starves another. A request
// whose session already runs its maximum waits without a slot and without holding up those behind it. A full queue
// answers at once with a [RejectedError] that names the limit, its figures, the setting to turn and when to come back.
//
// A request enters once: what admitted work creates never queues for a slot again. Inside, work takes [Permits]
// (scripts, password hashing), always in the order slot, script, connection and never backwards; every byte held for a client
// counts against one [Budget]. A [RateLimiter] counts requests per user and clock hour.
//
// Everything is bounded, every bound is a setting, and all settings change while running ([Gate.Reconfigure])
// without losing a waiter. All types are safe for concurrent use; the package starts no goroutines. It knows no HTTP and no SQL.
package gate
