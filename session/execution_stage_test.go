package session

import (
	"fmt"
	"testing"
)

func TestStagesOfAnExecutionFollowEachOtherAsDrawn(t *testing.T) {
	names := []string{"in line", "asking", "running", "cancelling", "ending", "ended"}
	drawn := map[string]bool{}
	for _, arrow := range []string{
		"in line > asking", "in line > running", "in line > cancelling",
		"asking > running", "asking > cancelling",
		"running > cancelling", "running > ending", "running > ended",
		"cancelling > ending",
		"cancelling > in line", "cancelling > asking", "cancelling > running", // the cancel could not be stored
		"ending > ended",
	} {
		drawn[arrow] = true
	}
	for from := stageInLine; from <= stageEnded; from++ {
		for to := stageInLine; to <= stageEnded; to++ {
			arrow := fmt.Sprintf("%s > %s", names[from], names[to])
			at := from
			if got := at.enter(to); got != drawn[arrow] {
				t.Errorf("%s is possible: %v", arrow, got)
			} else if got != (at == to) && from != to || !got && at != from {
				t.Errorf("%s leaves it %s", arrow, names[at])
			}
		}
	}
}
