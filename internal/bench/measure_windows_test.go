package bench

import (
	"os"
	"time"
)

func cpuTime() time.Duration { return 0 }

func datasync(f *os.File) error { return f.Sync() }
