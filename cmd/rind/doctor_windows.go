package main

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// kernel is the version of the system.
func kernel() string {
	v := windows.RtlGetVersion()
	return fmt.Sprintf("Windows %d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
}
