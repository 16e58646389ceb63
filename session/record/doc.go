// Package record writes the log file logs/rind.log of the data root: what happened, in metadata only, and the details of every error id
// a person was shown (docs/protocol/rind-v2.md section 1.2).
//
// It promises never to fail, hold up or end the runtime: nothing here returns an error or waits for a disk or a pipe (but ErrorID and
// Close, each for a bounded time); what cannot be written is dropped and counted. No secret that was named to the Redactor and no long
// text reaches the file. Nothing is created before the first line. Several processes may write one file.
//
// A Log owns up to two goroutines: one writes the file, one (only with Debug) standard error. Each starts with the first line, waits
// for lines in a bounded queue, and is ended by Close. The one for standard error can be stuck in a write that nobody reads;
// Close does not wait for it then, and it ends with the process or when the reader does.
package record
