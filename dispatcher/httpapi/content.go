package httpapi

import (
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
)

// File is a regular file, open for reading.
type File interface {
	io.ReadSeekCloser
	Stat() (fs.FileInfo, error)
}

// artifactContent answers with the present bytes of a file that a tool changed (section 2.1), opened through the roots of the conversation.
func (x *exchange) artifactContent() error {
	run, err := x.run()
	if err != nil {
		return err
	}
	none := &portable.Error{Code: portable.NotFound, Message: "Artifact content not found: " + protocol.Prefix(x.args[1], 200)}
	path, media, err := run.ChangedFile(x.r.Context(), x.args[1])
	if err != nil {
		return err
	}
	if path == "" || x.s.cfg.OpenFile == nil {
		return none
	}
	f, err := x.s.cfg.OpenFile(run.Session.Workspace, path)
	if err != nil {
		none.Cause = err
		return none
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		none.Cause = err
		return none
	}
	return x.bytes(f, info, media)
}

// bytes answers with a file, or with the one range that is asked for.
func (x *exchange) bytes(f File, info fs.FileInfo, media string) error {
	size := info.Size()
	from, to, status := int64(0), size, http.StatusOK
	changed := info.ModTime().UTC().Format(http.TimeFormat)
	h := x.w.Header()
	h.Set("Accept-Ranges", "bytes")
	if want, ok := byteRange(x.r.Header.Values("Range"), size); ok && fresh(x.r.Header.Get("If-Range"), info.ModTime()) {
		if want.from >= want.to {
			h.Set("Content-Range", "bytes */"+strconv.FormatInt(size, 10))
			return &portable.Error{Code: portable.Validation, Message: "Range not satisfiable", Status: http.StatusRequestedRangeNotSatisfiable}
		}
		from, to, status = want.from, want.to, http.StatusPartialContent
		h.Set("Content-Range", "bytes "+strconv.FormatInt(from, 10)+"-"+strconv.FormatInt(to-1, 10)+"/"+strconv.FormatInt(size, 10))
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return err
	}
	h.Set("Content-Type", media)
	h.Set("Content-Disposition", "attachment")
	h.Set("Cache-Control", "no-store")
	h.Set("Last-Modified", changed)
	h.Set("Content-Length", strconv.FormatInt(to-from, 10))
	x.status(status)
	if x.r.Method == http.MethodHead {
		return nil
	}
	if _, err := io.CopyN(x.w, f, to-from); err != nil {
		panic(http.ErrAbortHandler) // the reader left, or the file became shorter: its end must not look like a good one
	}
	return nil
}

// fresh reports whether a range may be given: If-Range is absent, or names this state of the file.
func fresh(ifRange string, changed time.Time) bool {
	if ifRange == "" {
		return true
	}
	at, err := http.ParseTime(ifRange)
	return err == nil && at.Equal(changed.Truncate(time.Second))
}

// span is the part [from, to) of a file; an empty one cannot be had.
type span struct{ from, to int64 }

// byteRange reads a Range header; false when there is none, or several, or it makes no sense, which all are answered with the whole.
func byteRange(headers []string, size int64) (span, bool) {
	if len(headers) != 1 {
		return span{}, false
	}
	text, ok := strings.CutPrefix(headers[0], "bytes=")
	first, last, dash := strings.Cut(strings.Trim(text, " \t"), "-")
	if !ok || !dash || strings.Contains(text, ",") {
		return span{}, false
	}
	number := func(s string) (int64, bool) {
		n, _ := strconv.ParseInt(s, 10, 64) // the largest there is for one that is larger: no file is of that size
		return n, s != "" && strings.Trim(s, "0123456789") == ""
	}
	if first == "" { // the last bytes
		n, ok := number(last)
		return span{max(0, size-n), size}, ok
	}
	from, ok := number(first)
	if !ok {
		return span{}, false
	}
	to := size
	if last != "" {
		end, ok := number(last)
		if !ok || end < from {
			return span{}, false
		}
		to = min(size-1, end) + 1
	}
	return span{from, to}, true
}
