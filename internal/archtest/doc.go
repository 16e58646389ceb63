// Package archtest keeps the rooms of the module apart: a test reads the imports of every Go file, for all operating systems at
// once, and holds them against one table (rooms_test.go). It has no code of its own and owns no goroutine.
package archtest
