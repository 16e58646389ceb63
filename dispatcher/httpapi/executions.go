package httpapi

import (
	"net/http"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/protocol/portable"
)

func (x *exchange) startExecution() error {
	req, err := portable.ReadStart(x.text)
	if err != nil {
		return err
	}
	answer, err := x.s.cfg.Commands.Start(x.r.Context(), &req)
	if err != nil {
		return err
	}
	return x.await(http.StatusAccepted, answer)
}

// await answers with the execution once what was asked of it is done.
func (x *exchange) await(status int, answer executions.Answer) error {
	e, err := answer(x.r.Context())
	if err != nil {
		return err
	}
	return x.answer(status, e)
}

// run finds the execution of the path.
func (x *exchange) run() (*executions.Run, error) {
	return x.s.cfg.Commands.Find(x.r.Context(), x.args[0])
}

func (x *exchange) readExecution() error {
	run, err := x.run()
	if err != nil {
		return err
	}
	return x.await(http.StatusOK, run.Read)
}

func (x *exchange) listArtifacts() error {
	run, err := x.run()
	if err != nil {
		return err
	}
	artifacts, err := run.Artifacts(x.r.Context())
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, map[string]any{"artifacts": artifacts})
}

func (x *exchange) cancelExecution() error {
	if x.args[0] == "" {
		return portable.Invalid("Path parameter suffix is invalid")
	}
	reason, err := portable.ReadCancel(x.text)
	if err != nil {
		return err
	}
	run, err := x.run()
	if err != nil {
		return err
	}
	answer, err := run.Cancel(x.r.Context(), reason)
	if err != nil {
		return err
	}
	return x.await(http.StatusOK, answer)
}

func (x *exchange) respondAction() error {
	if x.text == nil {
		return portable.ErrNoBody()
	}
	run, err := x.run()
	if err != nil {
		return err
	}
	answer, err := run.Respond(x.r.Context(), x.args[1], x.text)
	if err != nil {
		return err
	}
	return x.await(http.StatusOK, answer)
}
