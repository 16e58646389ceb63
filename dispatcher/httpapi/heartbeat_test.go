package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// timed is the answer to a request, and when what was written of it went out.
type timed struct {
	header http.Header
	begun  time.Time
	mu     sync.Mutex
	held   string   // written, not seen off yet
	told   []string // each with the time since the beginning
}

func (w *timed) Header() http.Header { return w.header }
func (w *timed) WriteHeader(int)     {}

func (w *timed) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held += string(b)
	return len(b), nil
}

// Flush implements http.Flusher.
func (w *timed) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for frame := range strings.SplitSeq(strings.TrimSuffix(w.held, "\n\n"), "\n\n") {
		word := frame
		if data, ok := strings.CutPrefix(frame, "event: "); ok {
			word, _, _ = strings.Cut(data, "\n")
		}
		w.told = append(w.told, fmt.Sprint(time.Since(w.begun), " ", word))
	}
	w.held = ""
}

// Section 5.1: a comment whenever 15 s passed without a write, so never between events that come sooner, and 15 s behind the last of them.
func TestAStreamIsCommentedWheneverNothingWasWrittenForFifteenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop, err := session.NewLoop(session.Loop{Models: &model{}})
		if err != nil {
			t.Fatal(err)
		}
		all := session.NewSessions(session.Config{Store: memory.New(), Agent: loop, Models: &model{}})
		api := New(Config{Sessions: all, Workspace: "/w", Commands: commands(all)})
		defer func() {
			if err := all.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			api.End(context.Background())
		}()
		do := func(w http.ResponseWriter, method, path, body string) {
			r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
			r.Host = "localhost"
			r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
			api.ServeHTTP(w, r)
		}
		id := func(path, body string) string {
			w := httptest.NewRecorder()
			do(w, "POST", path, body)
			return (&answered{body: w.Body.Bytes()}).member("id")
		}
		execution := id("/v1/executions", `{"conversationId":"`+id("/v1/conversations", "{}")+`","providerId":"script","input":"","config":{"steps":[
			{"delta":"a"},{"sleepMs":14000},{"delta":"b"},{"sleepMs":14000},{"delta":"c"},{"sleepMs":40000},{"input":{"title":"t"}},{"delta":"d"}]}}`)
		synctest.Wait()
		w := &timed{header: http.Header{}, begun: time.Now()}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			do(w, "GET", "/v1/executions/"+execution+"/events", "")
		}()
		time.Sleep(100 * time.Second)
		var list portable.EventList
		page := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/executions/"+execution+"/events?after=5", nil)
		r.Host = "localhost"
		api.ServeHTTP(page, r)
		var a portable.Action
		if json.Unmarshal(page.Body.Bytes(), &list) != nil || len(list.Events) == 0 || json.Unmarshal(list.Events[0].Data, &a) != nil {
			t.Fatalf("%s", page.Body)
		}
		do(httptest.NewRecorder(), "POST", "/v1/executions/"+execution+"/actions/"+a.ID+":respond", `{"value":"v"}`)
		<-ended
		w.Flush() // the rest goes out with the end of the answer
		want := []string{
			"0s run.queued", "0s run.started", "0s output.text.delta", "14s output.text.delta", "28s output.text.delta", "43s : ping", "58s : ping",
			"1m8s action.required", "1m23s : ping", "1m38s : ping", "1m40s action.responded",
		}
		got := strings.Join(w.told, "\n")
		if !strings.HasPrefix(got, strings.Join(want, "\n")+"\n") || !strings.HasSuffix(got, "\n1m40s run.completed") {
			t.Errorf("told\n%s", got)
		}
	})
}
