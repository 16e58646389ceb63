package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

// Section 1: what is written at one time may be of any size. A reader that is slow gets all of it; one that stops is cut.
func TestAReaderThatIsSlowGetsAllOfALargeWriteAndOneThatStopsIsCut(t *testing.T) {
	const size, took = 4 << 20, 64 << 10 // took in a second
	text := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	for name, write := range map[string]func(c *conn) (int64, error){
		"write": func(c *conn) (int64, error) { n, err := c.Write(text); return int64(n), err },
		"file":  func(c *conn) (int64, error) { return c.ReadFrom(bytes.NewReader(text)) },
		"part of a file": func(c *conn) (int64, error) {
			return c.ReadFrom(io.LimitReader(io.MultiReader(bytes.NewReader(text), bytes.NewReader(text)), size))
		},
	} {
		for _, stops := range []int{size, 10 * took} {
			t.Run(fmt.Sprintf("%s, read up to %d", name, stops), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ours, theirs := net.Pipe()
					defer ours.Close()
					defer theirs.Close()
					read := make(chan []byte, 1)
					go func() {
						var all []byte
						for len(all) < stops {
							time.Sleep(time.Second)
							b := make([]byte, took)
							n, _ := io.ReadFull(theirs, b)
							all = append(all, b[:n]...)
							if n < took {
								break
							}
						}
						read <- all
					}()
					begun := time.Now()
					n, err := write(&conn{Conn: ours, stall: 30 * time.Second})
					after := time.Since(begun)
					_ = ours.Close()
					if got := <-read; n != int64(stops) || !bytes.Equal(got, text[:n]) {
						t.Errorf("%d bytes were written, %d were read", n, len(got))
					}
					reading := time.Duration(stops/took) * time.Second
					switch cut := errors.Is(err, os.ErrDeadlineExceeded); {
					case stops == size && (err != nil || after != reading):
						t.Errorf("%v after %v", err, after)
					case stops < size && (!cut || after < reading+30*time.Second || after > reading+31*time.Second):
						t.Errorf("it stopped after %v: %v after %v", reading, err, after)
					}
				})
			})
		}
	}
}

// The system holds little for a reader: with megabytes in its hands a slow one would not be seen to read, and be cut.
func TestTheSystemHoldsLittleOfWhatNobodyReads(t *testing.T) {
	if b := New(Config{}).cfg.Buffer; b != 128<<10 {
		t.Errorf("a server lets the system hold %d bytes", b)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	theirs, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	_ = theirs.(*net.TCPConn).SetReadBuffer(4096)
	ours, err := listener{ln, 100 * time.Millisecond, writeBuffer}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	if n, err := ours.Write(make([]byte, 16<<20)); !errors.Is(err, os.ErrDeadlineExceeded) || n > 1<<20 {
		t.Errorf("%d bytes were taken, %v", n, err)
	}
}
