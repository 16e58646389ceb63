package main

import (
	"os"
	"runtime"
	"testing"
)

func TestAServerLeavesHalfOfTheCoresToOthersUnlessItIsTold(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 16: 8} {
		if got := half(n); got != want {
			t.Errorf("of %d cores %d", n, got)
		}
	}
	was := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(was)
	t.Setenv("GOMAXPROCS", "4")
	runtime.GOMAXPROCS(4)
	if leaveCores(); runtime.GOMAXPROCS(0) != 4 {
		t.Errorf("told to take 4 it takes %d", runtime.GOMAXPROCS(0))
	}
	if err := os.Unsetenv("GOMAXPROCS"); err != nil { // as it was is put back by Setenv's cleanup
		t.Fatal(err)
	}
	if leaveCores(); runtime.GOMAXPROCS(0) != 2 {
		t.Errorf("of 4 cores it takes %d", runtime.GOMAXPROCS(0))
	}
}
