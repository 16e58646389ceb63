package httpapi

import (
	"bytes"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// counted counts how often a deadline is set.
type counted struct {
	net.Conn
	set int
}

func (c *counted) SetWriteDeadline(t time.Time) error {
	c.set++
	return c.Conn.SetWriteDeadline(t)
}

// Section 1: 30 s for each write, however long before it the last one was.
func TestEachWriteHasItsTimeAndDeadlinesAreSetSeldom(t *testing.T) {
	for name, write := range map[string]func(c *conn, b byte) error{
		"write": func(c *conn, b byte) error { _, err := c.Write([]byte{b}); return err },
		"file":  func(c *conn, b byte) error { _, err := c.ReadFrom(bytes.NewReader([]byte{b})); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				defer ours.Close()
				defer theirs.Close()
				under := &counted{Conn: ours}
				c := &conn{Conn: under, stall: 30 * time.Second}
				read := func(wait time.Duration) {
					go func() {
						time.Sleep(wait)
						_, _ = theirs.Read(make([]byte, 1))
					}()
				}
				for range 1000 {
					read(0)
					if err := write(c, 'x'); err != nil {
						t.Fatal(err)
					}
					time.Sleep(5 * time.Millisecond)
				}
				if under.set > 6 {
					t.Errorf("a deadline was set %d times in 5 s", under.set)
				}
				for _, pause := range []time.Duration{0, 900 * time.Millisecond, 29 * time.Second, time.Hour} {
					time.Sleep(pause)
					read(30*time.Second - time.Millisecond)
					if err := write(c, 'x'); err != nil {
						t.Errorf("%v after the last write, with a reader that takes its time: %v", pause, err)
					}
				}
				begun := time.Now()
				err := write(c, 'x')
				if took := time.Since(begun); !errors.Is(err, os.ErrDeadlineExceeded) || took < 30*time.Second || took > 31*time.Second {
					t.Errorf("nobody reads: %v after %v", err, took)
				}
			})
		})
	}
}
