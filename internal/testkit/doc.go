// Package testkit holds what tests of several rooms need and no room owns: a strict model double's view of a history, a clock that
// stands still until told to move, identifiers that are the same in every run, and the real binary built and run as an editor would run
// it. Only test files import it.
//
// Goroutines: each Process has two, one that reads its standard output a line ahead and one that waits for its end; the cleanup that
// Start registers with the test kills what is left of the process group and waits for both. Nothing else here starts any.
package testkit
