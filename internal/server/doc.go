// Package server is the door: listeners, the line that a request takes, and what the outside sees of the machine.
//
//	session ─ body ─ gate ─ Decode ─▶ unit ─ executor ─▶ outcomes ─ Reply ─ release ─ write
//
// Who is calling is known from the headers. The body is read before the gate and the answer written after it, so no slot is
// held while a client sends or reads; only an answer larger than the buffer streams inside its slot, under a write deadline that
// moves with it. Everything that a client controls is bounded by a setting. A panic becomes an internal error here and nowhere
// else; internal errors are logged once, with the id that the client is told.
//
// The package knows HTTP and no protocol: what a path means, and how an error looks, says its dialect.
package server
