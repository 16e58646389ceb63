// Package settings is the words of the file $RIND_HOME/settings.json: where it lies, what it may say, and what it means together with
// the environment (docs/protocol/rind-v2.md sections 1.2 and 1.3). The page docs/settings.md and the JSON schema come from the same table
// as the checks.
//
// It promises that a file is read whole or refused with a place and a reason, never in part; that no text it makes holds a key; that
// reading creates nothing; and that a change keeps what it does not touch and replaces the file in one step.
//
// It owns no goroutine. Its values are plain data, safe to read from any.
package settings

//go:generate go test -count=1 -run ^TestTheSettingsPageIsCurrent$ . -update
