package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Bounds of a log. A text of metadata is short; one that is not is somebody's content that must not be here.
const (
	DefaultMaxSize  = 4 << 20 // bytes of one file
	DefaultMaxFiles = 5       // rind.log, rind.log.1 … rind.log.4
	longestText     = 256     // bytes of one attribute
	longestDetail   = 8 << 10 // bytes of a Detail
	queueLines      = 1024    // lines that wait for a writer
	queueBytes      = 1 << 20
)

// longestWait is for a disk or pipe that does not take what it is given. Tests lengthen it.
var longestWait = 250 * time.Millisecond

// Options say how a Log is written. Only Path is needed.
type Options struct {
	Path     string        // of the file; its folder is made with the first line. "" for no file
	Level    slog.Level    // lines below it are not written; the zero value is Info
	Debug    io.Writer     // gets each line too, nil for nobody; os.Stderr with --debug
	MaxSize  int64         // bytes of one file, 0 for DefaultMaxSize
	MaxFiles int           // 0 for DefaultMaxFiles
	NewID    func() string // of errors, 32 hexadecimal digits; nil for random ones
}

// Log is the log file. Use New. Its methods are safe for concurrent use.
type Log struct {
	Redactor
	opts  Options
	queue *queue
	debug *queue
	text  slog.Handler // renders into Write
}

// New gives a log. Nothing is opened or started before the first line.
func New(o Options) *Log {
	if o.MaxSize <= 0 {
		o.MaxSize = DefaultMaxSize
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = DefaultMaxFiles
	}
	if o.NewID == nil {
		o.NewID = protocol.RandomIDs{}.Hex32
	}
	l := &Log{opts: o}
	if o.Path != "" {
		f := &file{path: o.Path, maxSize: o.MaxSize, maxFiles: o.MaxFiles}
		l.queue = newQueue(f.write, f.close)
	}
	if o.Debug != nil {
		out := withoutSignal(o.Debug)
		l.debug = newQueue(func(b []byte) error { _, err := out.Write(b); return err }, nil)
	}
	l.text = slog.NewJSONHandler(lines{l}, &slog.HandlerOptions{Level: o.Level, ReplaceAttr: l.bound})
	return l
}

// Handler gives the slog handler that writes here.
func (l *Log) Handler() slog.Handler { return l.text }

// Logger gives a logger that writes here.
func (l *Log) Logger() *slog.Logger { return slog.New(l.text) }

// ErrorID gives err an id to be shown to a person, 32 hexadecimal digits, and writes its details under it. It waits until they are
// written, at most 250 ms: an id that is shown should be found.
func (l *Log) ErrorID(err error, attrs ...slog.Attr) string {
	id := l.opts.NewID()
	attrs = append([]slog.Attr{slog.String("error_id", id), slog.Any("error", inFull(err))}, attrs...)
	slog.New(l.text).LogAttrs(context.Background(), slog.LevelError, "error", attrs...)
	l.queue.flush(longestWait)
	return id
}

// Close writes what waits, for at most 250 ms each to the file and to standard error, and ends the goroutines. Lines after it are
// dropped. Idempotent.
func (l *Log) Close() {
	var both sync.WaitGroup
	both.Go(func() { l.queue.close(longestWait) })
	both.Go(func() { l.debug.close(longestWait) })
	both.Wait()
}

// lines takes what slog renders, one line a call, to the queues.
type lines struct{ log *Log }

func (w lines) Write(line []byte) (int, error) {
	// Once more over the whole: a secret may have come in a message, a group or a key.
	safe := []byte(w.log.Redact(string(line)))
	w.log.queue.put(safe)
	w.log.debug.put(safe)
	return len(line), nil
}

// Detail is a text that may be long: 8 KiB of it are kept, where other attributes keep 256 bytes. A stack is one.
type Detail string

// inFull tells of an error what is to be known of it, with the cause that clients are not told.
func inFull(err error) Detail {
	out := fmt.Sprintf("%T: %v", err, err)
	if e, ok := errors.AsType[*protocol.Error](err); ok && e.Cause != nil {
		out += fmt.Sprintf(" (cause: %T: %v)", e.Cause, e.Cause)
	}
	return Detail(out)
}

// bound makes every attribute short and free of secrets. What is no number, time or truth is written as text.
func (l *Log) bound(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(l.short(a.Value.String(), longestText))
	case slog.KindAny:
		switch v := a.Value.Any().(type) {
		case *slog.Source, slog.Level:
			return a
		case Detail:
			a.Value = slog.StringValue(l.short(string(v), longestDetail))
		case nil:
		default:
			a.Value = slog.StringValue(l.short(fmt.Sprint(v), longestText))
		}
	}
	return a
}

// short redacts before it cuts, so that no part of a secret is left at the end.
func (l *Log) short(text string, limit int) string {
	// A text far over the limit is not searched whole; what lies behind is cut off anyway.
	const margin = 4 << 10
	if len(text) > limit+margin {
		text = text[:limit+margin]
	}
	text = l.Redact(text)
	if len(text) <= limit {
		return text
	}
	return string(bytes.ToValidUTF8([]byte(text[:limit]), nil)) + "…"
}
