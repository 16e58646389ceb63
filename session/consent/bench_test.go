package consent_test

import "testing"

func BenchmarkJudge(b *testing.B) {
	p := newPlace(b)
	for name, command := range map[string]string{"read": `cd src && grep -n main main.go | head -5`, "ask": `git add . && git commit -m "x"`, "blocked": `sudo sh -c 'rm -rf /'`} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p.run("ask", command)
			}
		})
	}
}
