// Package auth says who is calling: Basic credentials, bearer tokens and session cookies, and the token endpoint that hands
// tokens out.
//
// Users come from a table of the project ([UserTables]) or stand in the settings ([StaticUser]). Passwords are stored as
// argon2id hashes in weir's own tables. A node keeps no state that another one needs: a session cookie carries its user,
// its end and a signature made with a secret that all nodes read from the database; tokens are rows, stored hashed. What a node
// remembers (verified credentials, users with their roles) is a cache with a short life, dropped when any node signals a change.
//
// Checking a password is dear on purpose. Guesses are limited per user and per address before anything is hashed, checks of
// the same credential that meet are one check, and all checks together take the permits handed in.
package auth
