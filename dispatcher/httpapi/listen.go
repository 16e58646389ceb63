package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
)

// slop is what net/http reads of a request's head beyond the bound that it is given.
const slop = 4 << 10

// Bounds of a connection (section 1).
func (s *Server) http() *http.Server {
	return &http.Server{
		Handler: s, ReadHeaderTimeout: s.cfg.Headers, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes - slop,
		ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelInfo), DisableGeneralOptionsHandler: true,
	}
}

// Serve answers on ln until that is closed. The work on open connections goes on; End ends it.
func (s *Server) Serve(ln net.Listener) error {
	err := s.srv.Serve(listener{ln, s.cfg.Stall, s.cfg.Buffer})
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// End lets every open stream deliver what the log has and end (section 1.2 d), and closes all connections: in good order until ctx ends,
// then at once. Safe to call twice.
func (s *Server) End(ctx context.Context) {
	s.Drain()
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.end)
		s.cfg.Commands.Close()
	}
	s.mu.Unlock()
	if s.srv.Shutdown(ctx) != nil {
		_ = s.srv.Close()
	}
}
