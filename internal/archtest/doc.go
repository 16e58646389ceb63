// Package archtest keeps the rooms of the module apart: a test reads the imports of every Go file, for all operating systems at
// once, and holds them against one table (rooms_test.go). Another one holds the tests that docs/decisions.md, docs/cases.md and
// docs/protocol/portable-rows.md name against those there are (pages_test.go). It has no code of its own and owns no goroutine.
package archtest
