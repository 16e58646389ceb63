// Package bench measures the goals of docs/performance.md and prints them as ratios within one run: `make bench`. It asserts nothing and
// has no code of its own.
package bench
