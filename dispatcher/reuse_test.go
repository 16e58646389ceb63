package dispatcher_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol/rindv2"
)

// hasty is a client that asks again under the id of an answer before the write that brought it has returned.
type hasty struct {
	in   *io.PipeWriter
	said bytes.Buffer
	left int
}

func (h *hasty) Write(p []byte) (int, error) {
	h.said.Write(p)
	if h.left > 0 {
		h.left--
		if _, err := io.WriteString(h.in, `{"kind":"request","request_id":1,"method":"ping"}`+"\n"); err != nil {
			return 0, err
		}
		synctest.Wait() // it has been looked at
	} else {
		h.in.Close()
	}
	return len(p), nil
}

func TestAnIdCanBeUsedAgainAsSoonAsItsAnswerIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := launch(t, peers.NewWorld(), "a", `[{"text":"x"}]`, "")
		in, feed := io.Pipe()
		client := &hasty{in: feed, left: 3}
		go io.WriteString(feed, `{"kind":"request","request_id":1,"method":"ping"}`+"\n")
		env := rindv2.Rind
		if err := p.d.Serve(context.Background(), in, client, dispatcher.Options{Envelope: &env}); err != nil {
			t.Error(err)
		}
		if want := bytes.Repeat([]byte(`{"kind":"response","request_id":1,"result":{"ok":true}}`+"\n"), 4); !bytes.Equal(client.said.Bytes(), want) {
			t.Errorf("answers %s", client.said.Bytes())
		}
		p.end()
	})
}

// A session that no connection has as current or follows is opened for each request, and gone again behind it.
func TestASessionThatNobodyHoldsIsFoundByEveryRequest(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "one", `[{"text":"Hello."}]`, "")
		defer p.end()
		c := p.connect(env)
		id := c.hello()
		c.call("session/prompt", `{"input":"hi"}`)
		c.call("session/new", "")
		c.call("session/unsubscribe", fmt.Sprintf(`{"session_id":%q}`, id))
		for range 200 {
			c.call("session/replay", fmt.Sprintf(`{"session_id":%q,"after_cursor":0}`, id))
			c.call("rind/goal/get", fmt.Sprintf(`{"session_id":%q}`, id))
		}
		c.call("session/fork", fmt.Sprintf(`{"session_id":%q}`, id))
	})
}
