//go:build unix

package settings

// homeVariables name the variables that hold the home folder, the first set one counts.
var homeVariables = []string{"HOME"}
