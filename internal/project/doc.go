// Package project takes a folder of definitions to the database and from there to every node.
//
// [Read] reads a project folder strictly: whatever it does not know is a fault, and all faults are listed, each with its
// file and line. [Apply] brings a database to what the project says: stored tables first, then the records that come with
// the project, then the definitions themselves under a new version. [Load] makes a snapshot of what is applied, and
// [Follow] keeps a node's catalog current. Several nodes may apply and follow at once: for each version one wins, and
// who loses looks again.
package project
