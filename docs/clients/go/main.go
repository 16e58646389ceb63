// Command go is a small client of `rind serve` (docs/http.md): it starts one execution, tells its events on standard output, one JSON object a
// line, and says yes to what it asks. It gets over cut connections and restarts of the server: the key makes the start happen once, the
// cursor makes each event come once, and an answer whose reply was lost is found to be given.
//
//	go run ./docs/clients/go http://127.0.0.1:4310 ~/.rind/http-token mock job-1 "Say hello"
//
// It exits 0 when the execution succeeded, else 1.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

type client struct{ base, token string }

// refusal is an answer that trying again would not change.
type refusal struct {
	Status        int
	Code, Message string
}

func (r *refusal) Error() string { return fmt.Sprintf("%d %s: %s", r.Status, r.Code, r.Message) }

// send makes a request. The answer is to be closed; what is not a success is an error.
func (c *client) send(method, path string, body any, headers ...string) (*http.Response, error) {
	text, _ := json.Marshal(body)
	req, err := http.NewRequest(method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode < 300 {
		return resp, err
	}
	defer resp.Body.Close()
	r := &refusal{Status: resp.StatusCode}
	_ = json.NewDecoder(resp.Body).Decode(r)
	return nil, r
}

// post sends until there is an answer: what has no answer, or a 5xx, may be asked again, as asking twice does nothing twice here.
func (c *client) post(path string, body, into any) error {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		resp, err := c.send("POST", path, body)
		if err == nil {
			err = json.NewDecoder(resp.Body).Decode(into)
			resp.Body.Close()
		}
		var r *refusal
		if err == nil || errors.As(err, &r) && r.Status < 500 {
			return err
		}
		fmt.Fprintln(os.Stderr, "again:", err)
		time.Sleep(wait)
	}
}

type event struct {
	Sequence int64
	Type     string
	Data     struct{ ID, Kind string }
}

var terminal = map[string]bool{"run.completed": true, "run.failed": true, "run.cancelled": true}

// follow hands over every event once and in order, until the terminal one, which it returns.
func (c *client) follow(execution string, see func(e *event, line string) error) (*event, error) {
	cursor := int64(0)
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		resp, err := c.send("GET", "/v1/executions/"+execution+"/events", nil, "Accept", "text/event-stream", "Last-Event-ID", fmt.Sprint(cursor))
		var in *bufio.Reader
		if err == nil {
			defer resp.Body.Close()
			in = bufio.NewReader(resp.Body)
		}
		for err == nil {
			var line string
			if line, err = in.ReadString('\n'); err != nil {
				break // the server went away, or let go of us
			}
			line, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "data: ")
			var e event
			if !ok || json.Unmarshal([]byte(line), &e) != nil || e.Sequence <= cursor {
				continue
			}
			cursor, wait = e.Sequence, 50*time.Millisecond
			if err := see(&e, line); err != nil || terminal[e.Type] {
				return &e, err
			}
		}
		var r *refusal
		if errors.As(err, &r) && r.Status < 500 {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "again from %d: %v\n", cursor, err)
		time.Sleep(wait)
	}
}

func run(base, tokenFile, provider, key, input string) error {
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return err
	}
	c := &client{base, strings.TrimSpace(string(token))}
	var conversation, execution struct{ ID string }
	if err := c.post("/v1/conversations", struct{}{}, &conversation); err != nil {
		return err
	}
	start := map[string]any{"conversationId": conversation.ID, "providerId": provider, "input": input, "idempotencyKey": key}
	if err := c.post("/v1/executions", start, &execution); err != nil {
		return err
	}
	end, err := c.follow(execution.ID, func(e *event, line string) error {
		fmt.Println(line)
		if e.Type != "action.required" || e.Data.Kind != "approval" {
			return nil
		}
		err := c.post("/v1/executions/"+execution.ID+"/actions/"+e.Data.ID+":respond", map[string]any{"approved": true}, &struct{}{})
		var r *refusal
		if errors.As(err, &r) && (r.Status == 409 || r.Status == 404) {
			return nil // answered already, perhaps by us, or not asked any more
		}
		return err
	})
	if err == nil && end.Type != "run.completed" {
		err = errors.New(end.Type)
	}
	return err
}

func main() {
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: client BASE-URL TOKEN-FILE PROVIDER KEY INPUT")
		os.Exit(2)
	}
	a := os.Args
	if err := run(a[1], a[2], a[3], a[4], a[5]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
