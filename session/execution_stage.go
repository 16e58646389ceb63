package session

import "slices"

// stage is how far an execution of a parallel provider has come in this process. stages holds the arrows.
//
//	in line ─▶ asking ─▶ running ─▶ ending ─▶ ended
//	   │         │          │         ▲
//	   └─────────┴──────────┴──▶ cancelling
//
// One that finds room at once is in line for no time. A cancel that cannot be stored leads back to where it came from, and an acceptance that
// cannot be stored ends what had begun with it.
type stage uint8

const (
	stageInLine     stage = iota // it waits for room in its session
	stageAsking                  // it still does, and has asked for a place of the process
	stageRunning                 // its provider works, or is about to be called
	stageCancelling              // its cancel is on the way to the disk, or there, and its cancel hook works
	stageEnding                  // its end is on the way to the disk, again and again until it is there
	stageEnded                   // its end is there, or is somebody else's by now
)

// stages says which stages may follow one.
var stages = [...][]stage{
	stageInLine:     {stageAsking, stageRunning, stageCancelling},
	stageAsking:     {stageRunning, stageCancelling},
	stageRunning:    {stageCancelling, stageEnding, stageEnded},
	stageCancelling: {stageInLine, stageAsking, stageRunning, stageEnding},
	stageEnding:     {stageEnded},
	stageEnded:      nil,
}

// enter goes on to the next stage; false where that does not follow, and nothing changes.
func (st *stage) enter(next stage) bool {
	if !slices.Contains(stages[*st], next) {
		return false
	}
	*st = next
	return true
}

// providerState is what an execution's provider does, whatever has become of the execution: it may still work on one that has ended.
type providerState uint8

const (
	uncalled providerState = iota
	working                // Run was called, or is about to be
	returned               // it came back, or is not waited for any more
)
