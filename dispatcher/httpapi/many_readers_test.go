package httpapi

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
)

var readers = flag.Int("readers", 200, "how many streams TestEveryReaderIsToldEverythingAndNothingStays opens at a time")

// Section 5.1: many readers of one execution, then one of each of as many: every event reaches each once and in order, and when they are gone
// there are as many descriptors and goroutines as before.
func TestEveryReaderIsToldEverythingAndNothingStays(t *testing.T) {
	descriptors := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return 0 // not told here
		}
		return len(list)
	}
	for _, one := range []bool{true, false} {
		t.Run(fmt.Sprintf("of one: %v", one), func(t *testing.T) {
			p := mocking(t)
			p.must(200, "GET", "/v1/runtime", "")
			p.http.CloseIdleConnections()
			var runs []string
			c := ""
			for i := range *readers {
				if i%32 == 0 { // a conversation runs 64 at a time
					c = p.conversation()
				}
				if i == 0 || !one {
					runs = append(runs, p.start(c, "mock", "a b c d e f", `,"config":{"requireApproval":true,"delayMs":1,"prefix":""}`))
				}
			}
			for _, id := range runs {
				p.until(id, "action.required")
			}
			p.http.CloseIdleConnections()
			fds, routines := descriptors(), runtime.NumGoroutine()
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			open := make(chan struct{}, *readers)
			var wg sync.WaitGroup
			for i := range *readers {
				wg.Go(func() {
					r, _ := http.NewRequestWithContext(ctx, "GET", p.base+"/v1/executions/"+runs[i%len(runs)]+"/events", nil)
					r.Header.Set("Authorization", "Bearer "+p.token)
					r.Header.Set("Accept", "text/event-stream")
					resp, err := p.http.Do(r)
					open <- struct{}{}
					if err != nil {
						t.Error(err)
						return
					}
					defer resp.Body.Close()
					var numbers []string
					in := bufio.NewScanner(resp.Body)
					for in.Scan() {
						if n, ok := strings.CutPrefix(in.Text(), "id: "); ok {
							numbers = append(numbers, n)
						}
					}
					if got := strings.Join(numbers, " "); got != "1 2 3 4 5 6 7 8 9 10 11 12" {
						t.Errorf("reader %d was told %s, %v", i, got, in.Err())
					}
				})
			}
			for range *readers {
				<-open
			}
			for _, id := range runs { // all read live from here on
				ask := p.until(id, "action.required")
				_, action, _ := strings.Cut(string(ask.Data), `"id":"`)
				action, _, _ = strings.Cut(action, `"`)
				p.must(200, "POST", "/v1/executions/"+id+"/actions/"+action+":respond", `{"approved":true}`)
			}
			wg.Wait()
			p.http.CloseIdleConnections()
			p.streamless()
			testkit.Eventually(t, "no more descriptors and goroutines than before", func() bool { // connections are closed by goroutines of their own
				return descriptors() <= fds && runtime.NumGoroutine() <= routines
			})
		})
	}
}
