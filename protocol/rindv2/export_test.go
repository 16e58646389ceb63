package rindv2

import "github.com/rind-dev/rind/protocol"

// ToldOf reads a row of the table told.
func ToldOf(k protocol.Kind) (event string, as protocol.Durability, mapped bool) {
	row := told[k]
	return row.event, row.as, row.silent || row.event != ""
}
