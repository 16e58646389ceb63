package session

import (
	"context"
	"iter"

	"github.com/rind-dev/rind/protocol"
)

// readPage is how many entries are asked of the store at once.
const readPage = 1024

// readLog yields the entries of a view behind after, oldest first, a page at a time: no read transaction is open while one is worked
// on. It ends with the log, or with the first error.
func readLog(ctx context.Context, store Log, id SessionID, after Seq, v protocol.View) iter.Seq2[*Entry, error] {
	return readPages(func() ([]Entry, error) { return store.Read(ctx, id, after, readPage, v) }, func(last *Entry) { after = last.Seq })
}

// readTurn yields the entries of a turn that hold a portable event, in order, as readLog does.
func readTurn(ctx context.Context, store Log, turn TurnID) iter.Seq2[*Entry, error] {
	after := int64(0)
	return readPages(func() ([]Entry, error) { return store.ReadTurn(ctx, turn, after, readPage, nil) }, func(last *Entry) {
		after = last.PortableFirst + int64(last.PortableCount) - 1
	})
}

// readBack yields the entries of a view, newest first, as readLog does.
func readBack(ctx context.Context, store Log, id SessionID, v protocol.View) iter.Seq2[*Entry, error] {
	before := Seq(0)
	return readPages(func() ([]Entry, error) { return store.ReadBack(ctx, id, before, readPage, v) }, func(last *Entry) { before = last.Seq })
}

// readPages yields what read returns until that is no full page; passed is told the last entry of each.
func readPages(read func() ([]Entry, error), passed func(last *Entry)) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for {
			page, err := read()
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page {
				if !yield(&page[i], nil) {
					return
				}
			}
			if len(page) < readPage {
				return
			}
			passed(&page[len(page)-1])
		}
	}
}
