package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/sqlite"
	"github.com/rind-dev/rind/session/store/storetest"
)

// The write-ahead log as it lies on the disk: a header, and frames of a header and a page each. Frames whose salt is not that of the file's
// header are left over from before it began anew.
const (
	walHeader   = 32
	frameHeader = 24
	frameSize   = frameHeader + 4096
)

// walEnd is where the frames of this generation end.
func walEnd(wal []byte) int {
	if len(wal) < walHeader {
		return 0
	}
	salt, end := string(wal[16:24]), walHeader
	for end+frameSize <= len(wal) && string(wal[end+8:end+16]) == salt {
		end += frameSize
	}
	return end
}

// onDisk is what a store's files hold behind an append that was acknowledged, and what of it a loss of power cannot take.
type onDisk struct {
	file, wal []byte
	end       int         // of the log
	flushed   int         // up to where it was
	head      session.Seq // newest entry
	safe      session.Seq // newest entry that may not be lost
}

// powered appends facts and increments to one session, and looks at the disk after each.
type powered struct {
	t       *testing.T
	s       *sqlite.Store
	path    string
	lease   session.Lease
	written []session.Entry
	now     onDisk
}

func newPowered(t *testing.T) *powered {
	t.Helper()
	p := &powered{t: t, path: filepath.Join(t.TempDir(), "sessions", "rind.db")}
	p.s = open(t, p.path)
	p.lease = storetest.Create(t, p.s, "s")
	p.append(p.fact())
	return p
}

func (p *powered) fact() []protocol.Body {
	return []protocol.Body{&protocol.SessionRenamed{Name: "n", Title: fmt.Sprint(len(p.written), strings.Repeat(" title", 700))}}
}

func (p *powered) text(n int) (all []protocol.Body) {
	for range n {
		all = append(all, &protocol.AssistantDelta{Text: fmt.Sprint(len(p.written), strings.Repeat(" text", 300))})
	}
	return all
}

func (p *powered) append(bodies []protocol.Body) {
	p.t.Helper()
	var b session.Batch
	for _, body := range bodies {
		b.Entries = append(b.Entries, storetest.Entry(session.Seq(len(p.written)+1+len(b.Entries)), "", body))
	}
	if err := storetest.Append(p.s, p.lease, b); err != nil {
		p.t.Fatal(err)
	}
	p.written = append(p.written, b.Entries...)
	level, err := p.s.Synchronous(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	began := p.generation()
	p.look()
	switch {
	case level == 2: // all of the log was flushed with it
		p.now.flushed = p.now.end
	case p.generation() != began: // what was in the log before is in the file
		p.now.flushed, p.now.safe = walHeader, session.Seq(len(p.written)-len(b.Entries))
	}
	for i := range b.Entries {
		if b.Entries[i].Class() == protocol.Fact { // it must be safe, whatever was flushed
			p.now.safe = p.now.head
		}
	}
}

// generation is what tells a log from the one it overwrites.
func (p *powered) generation() string {
	if len(p.now.wal) < walHeader {
		return ""
	}
	return string(p.now.wal[16:24])
}

// look reads the files.
func (p *powered) look() {
	p.t.Helper()
	p.now.file, p.now.wal = read(p.t, p.path), read(p.t, p.path+"-wal")
	p.now.end, p.now.head = walEnd(p.now.wal), session.Seq(len(p.written))
}

// back opens what a loss of power left. All that was flushed is there, and what is there is the beginning of what was written; then the session
// goes on.
func (p *powered) back(what string, file, wal []byte, safe session.Seq) {
	p.t.Helper()
	ctx := p.t.Context()
	path := filledCopy(p.t, file, wal)
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	defer s.Close()
	l, err := s.Acquire(ctx, "s")
	if err != nil {
		p.t.Errorf("%s: %v", what, err)
		return
	}
	es, err := s.Read(ctx, "s", 0, 1<<20, protocol.ViewAll)
	if err != nil || session.Seq(len(es)) < safe || len(es) > len(p.written) || l.Head != session.Seq(len(es)) {
		p.t.Errorf("%s: %d entries and head %d, %d are safe and %d were written (%v)", what, len(es), l.Head, safe, len(p.written), err)
		return
	}
	for i := range es {
		if es[i].Seq != p.written[i].Seq || string(es[i].Event) != string(p.written[i].Event) {
			p.t.Errorf("%s: entry %d is %d %.80s", what, i+1, es[i].Seq, es[i].Event)
			return
		}
	}
	next := storetest.Entry(l.Head+1, "", &protocol.SessionRenamed{Name: "n", Title: "back"})
	if err := storetest.Append(s, l, session.Batch{Entries: []session.Entry{next}}); err != nil {
		p.t.Errorf("%s: the session does not go on: %v", what, err)
	}
	if h, err := s.Health(ctx); err != nil || h.Integrity != "ok" {
		p.t.Errorf("%s: integrity %q, %v", what, h.Integrity, err)
	}
}

// losses are ways in which a disk may have kept a log of which only the beginning was flushed: cut at and within each frame behind that, and, as
// sectors are written in any order, with frames that are not there, half there, or that hold something else, before frames that are.
func losses(wal []byte, flushed, end int) map[string][]byte {
	kept := map[string][]byte{}
	for at := max(flushed, walHeader); at <= end; at += frameSize {
		kept[fmt.Sprintf("cut at %d", at)] = wal[:at]
		if at == end {
			break
		}
		for _, n := range []int{frameHeader / 2, frameHeader, frameHeader + 2048, frameSize - 1} {
			kept[fmt.Sprintf("cut at %d+%d", at, n)] = wal[:at+n]
		}
		for name, torn := range map[string]func([]byte){
			"without the frame": func(f []byte) { clear(f) },
			"half the page":     func(f []byte) { clear(f[frameHeader+2048:]) },
			"another half":      func(f []byte) { copy(f[frameHeader+512:], wal[walHeader+frameHeader:walHeader+frameHeader+1024]) },
			"a flipped bit":     func(f []byte) { f[frameHeader+3000] ^= 4 },
		} {
			b := append([]byte(nil), wal[:end]...)
			torn(b[at : at+frameSize])
			kept[fmt.Sprintf("%s at %d", name, at)] = b
		}
	}
	return kept
}

// The power fails behind an append that was acknowledged, or in the middle of the next one: whatever the disk made of what was not flushed, every fact
// is there, and what is there of the rest is a beginning of it.
func TestALossOfPowerTakesNoFactAndLeavesABeginning(t *testing.T) {
	t.Cleanup(sqlite.ShortenWaits(5*time.Second, time.Hour))
	p := newPowered(t)
	cases := 0
	lose := func(before onDisk) {
		tried := 0
		for what, wal := range losses(p.now.wal, before.flushed, p.now.end) {
			if tried++; tried > 15 {
				break // others the next time: their order is random
			}
			p.back(what, before.file, wal, before.safe)
		}
		cases += tried
	}
	for _, next := range []func() []protocol.Body{
		p.fact, func() []protocol.Body { return p.text(1) }, func() []protocol.Body { return p.text(2) }, p.fact,
		func() []protocol.Body { return append(p.text(2), p.fact()...) }, func() []protocol.Body { return p.text(3) },
	} {
		before := p.now
		p.append(next())
		lose(before)
	}
	lose(p.now) // and behind the last one
	if cases < 60 {
		t.Errorf("only %d losses were tried", cases)
	}
	t.Logf("%d losses", cases)
}

// The power fails while the log is moved into the file: pages of the file are new, old or torn, as the log is whole. Then it has been moved, and the
// log is gone, or not yet.
func TestALossOfPowerWhileTheLogIsMovedTakesNothing(t *testing.T) {
	t.Cleanup(sqlite.ShortenWaits(5*time.Second, time.Hour))
	p := newPowered(t)
	for range 3 {
		p.append(p.text(3))
		p.append(p.fact())
	}
	before := p.now
	p.s.Checkpoint(t.Context())
	p.look()
	after := p.now
	if len(after.wal) != 0 || len(after.file) <= len(before.file) {
		t.Fatalf("nothing was moved: a log of %d bytes, a file of %d that had %d", len(after.wal), len(after.file), len(before.file))
	}
	for round := range 15 {
		r := rand.New(rand.NewPCG(1, uint64(round)))
		size := len(before.file) + 4096*r.IntN((len(after.file)-len(before.file))/4096+1)
		file := make([]byte, size)
		copy(file, before.file)
		for at := 0; at < size; at += 4096 {
			n := []int{0, 4096, 4096, 512, 2048}[r.IntN(5)]
			copy(file[at:at+n], after.file[at:])
		}
		p.back(fmt.Sprint("pages as of round ", round), file, before.wal, before.safe)
	}
	p.back("moved, the log is there", after.file, before.wal, before.safe)
	p.back("moved, the log is gone", after.file, nil, before.safe)
}

// A log that begins anew overwrites itself: behind its frames are those of before. The power fails in the first appends of the new one.
func TestALossOfPowerInALogThatBeganAnewTakesNoFact(t *testing.T) {
	t.Cleanup(sqlite.ShortenWaits(5*time.Second, time.Hour))
	p := newPowered(t)
	for first := p.generation(); p.generation() == first; {
		if p.append(p.text(100)); len(p.now.wal) > 16<<20 {
			t.Fatal("the log does not begin anew")
		}
	}
	if p.now.end >= len(p.now.wal) {
		t.Fatal("nothing is left of the log before")
	}
	for _, next := range []func() []protocol.Body{p.fact, func() []protocol.Body { return p.text(1) }, p.fact} {
		before := p.now
		p.append(next())
		step := max(frameSize/2, (p.now.end-before.flushed)/4/frameSize*frameSize+frameSize/2)
		for at := before.flushed; at <= p.now.end; at += step {
			wal := append([]byte(nil), before.wal...) // what was there before this append, and behind it what the log held before it began anew
			if at > before.end {
				copy(wal[before.end:], p.now.wal[before.end:at])
			}
			p.back(fmt.Sprintf("%d bytes of %d", at, p.now.end), before.file, wal, before.safe)
		}
	}
}
