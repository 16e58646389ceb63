package keyring

import "os"

func system(env func(string) (string, bool)) (Ring, error) {
	const path = "/usr/bin/security" // the system's own, whatever PATH says: it sees keys
	if _, err := os.Stat(path); err != nil {
		return nil, ErrNone
	}
	return security{newProgram(path, env)}, nil
}
