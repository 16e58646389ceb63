package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/dispatcher/httpapi"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
	"github.com/rind-dev/rind/session/settings"
)

// requeueWithin is how old an execution may be that waited for its start when its process ended, to be started by another one.
const requeueWithin = time.Hour

// serveFlags are those of docs/protocol/portable-2026-09-02.md section 1.
type serveFlags struct {
	common
	host       string
	port       int
	auth       string
	tokenFile  string
	hosts      []string
	origins    []string
	workspaces []string
	data       string
	running    int
	cleanup    time.Duration
	drain      time.Duration
	requeue    time.Duration
}

// serveCommand serves the portable execution protocol over HTTP.
func serveCommand(std *streams) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the portable execution protocol over HTTP and SSE", Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return misserved(fmt.Errorf("unexpected argument: %s", args[0]))
			}
			if err := f.fromEnv(cmd, os.LookupEnv); err != nil {
				return err
			}
			return runServe(cmd.Context(), std, &f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.host, "host", "127.0.0.1", "address to listen on (also RIND_HTTP_HOST)")
	fl.IntVar(&f.port, "port", 4310, "port to listen on, 0 for any free one (also RIND_HTTP_PORT)")
	fl.StringVar(&f.auth, "auth", "token", "token, or none: only on a loopback address")
	fl.StringVar(&f.tokenFile, "token-file", "", "file of the bearer token (default: http-token in the data folder, fresh at each start, unless another server of this folder runs)")
	fl.StringArrayVar(&f.hosts, "allow-host", nil, "further Host header that is accepted (repeatable)")
	fl.StringArrayVar(&f.origins, "allow-origin", nil, "further Origin header that is accepted (repeatable)")
	fl.StringVar(&f.cwd, "cwd", "", "default workspace (default: the current folder)")
	fl.StringArrayVar(&f.workspaces, "workspace", nil, "NAME=DIR: further workspace, chosen by the Rind-Workspace header (repeatable)")
	fl.StringVar(&f.data, "data", "", "data folder (default: $RIND_HOME, else ~/.rind)")
	fl.IntVar(&f.running, "max-running", 256, "executions that run at one time; others wait in line")
	fl.DurationVar(&f.cleanup, "cleanup-timeout", 10*time.Second, "bound of a provider's cleanup after a cancel, 100ms to 10m")
	fl.DurationVar(&f.drain, "drain", 10*time.Second, "how long a graceful stop waits for running executions")
	fl.DurationVar(&f.requeue, "requeue-within", requeueWithin, "executions that waited for their start when the runtime stopped are started if they are not older")
	fl.BoolVar(&f.debug, "debug", false, "write the log to standard error as well")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return misserved(err) })
	return cmd
}

// misserved is a mistake in the command line, in the one line that section 1 promises to whatever starts a server.
func misserved(err error) error { return exitf(exitUsage, "%v; see rind serve --help", err) }

// fromEnv reads what flags leave open.
func (f *serveFlags) fromEnv(cmd *cobra.Command, env func(string) (string, bool)) error {
	if host, ok := env("RIND_HTTP_HOST"); ok && host != "" && !cmd.Flags().Changed("host") {
		f.host = host
	}
	if port, ok := env("RIND_HTTP_PORT"); ok && port != "" && !cmd.Flags().Changed("port") {
		n, err := strconv.Atoi(port)
		if err != nil {
			return exitf(exitUsage, "RIND_HTTP_PORT is not a port: %s", port)
		}
		f.port = n
	}
	switch {
	case f.host == "": // would be every address there is
		return exitf(exitUsage, "--host is empty; leave it out for 127.0.0.1, or give 0.0.0.0 for every address")
	case f.port < 0 || f.port > 65535:
		return exitf(exitUsage, "--port has to be 0 to 65535")
	case f.auth != "token" && f.auth != "none":
		return exitf(exitUsage, "--auth is token or none")
	case f.running < 1:
		return exitf(exitUsage, "--max-running has to be 1 or more")
	case f.cleanup < 100*time.Millisecond || f.cleanup > 10*time.Minute:
		return exitf(exitUsage, "--cleanup-timeout has to be 100ms to 10m")
	case f.drain < 0 || f.requeue < 0:
		return exitf(exitUsage, "--drain and --requeue-within cannot be negative")
	case f.auth == "none" && !loopback(f.host):
		return exitf(exitUsage, "--auth none is for loopback addresses only; %s is reached from outside", f.host)
	case f.tokenFile == "" && cmd.Flags().Changed("token-file"): // a variable that is not set must not make another token the one that counts
		return exitf(exitUsage, "--token-file is empty; leave it out for http-token in the data folder")
	}
	return f.callers()
}

// callers checks what --allow-host and --allow-origin let in. What no browser ever sends would let in nobody; an empty name and the origin null would
// let in what has no name: any sandboxed page, any file.
func (f *serveFlags) callers() error {
	for _, h := range f.hosts {
		if !hostNamed(h) {
			return exitf(exitUsage, "--allow-host is HOST or HOST:PORT as a Host header has it: %q", h)
		}
	}
	for _, o := range f.origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Scheme+"://"+u.Host != o || !hostNamed(u.Host) || strings.ToLower(o) != o { // a browser writes them in small letters
			return exitf(exitUsage, "--allow-origin is SCHEME://HOST or SCHEME://HOST:PORT as an Origin header has it, in small letters and without a path: %q", o)
		}
	}
	return nil
}

// hostNamed reports whether s is HOST or HOST:PORT as a header has it: one name or address, and a port that there is.
func hostNamed(s string) bool {
	u, err := url.Parse("http://" + s)
	if err != nil || u.Host != s || strings.HasSuffix(s, ":") {
		return false
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return false
		}
	}
	name := u.Hostname()
	if strings.HasPrefix(s, "[") {
		addr, err := netip.ParseAddr(name)
		return err == nil && addr.Is6() && addr.Zone() == ""
	}
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._", r)
	}
	return name != "" && !strings.EqualFold(name, "null") && !strings.ContainsFunc(name, odd)
}

// loopback reports whether an address is reached from this machine alone.
func loopback(host string) bool {
	if addr, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return addr.Unmap().IsLoopback()
	}
	if host != "localhost" {
		return false
	}
	addrs, err := net.LookupHost(host)
	if err != nil || len(addrs) == 0 {
		return false
	}
	for _, a := range addrs {
		if addr, err := netip.ParseAddr(a); err != nil || !addr.IsLoopback() {
			return false
		}
	}
	return true
}

// places resolves --cwd, which has to be there if it is given, and --workspace.
func (f *serveFlags) places() (map[string]string, error) {
	if f.cwd != "" {
		if _, err := workspace(f.cwd, os.LookupEnv); err != nil {
			return nil, exitf(exitUsage, "--cwd: no such folder: %s", f.cwd)
		}
	}
	out := map[string]string{}
	for _, w := range f.workspaces {
		name, dir, ok := strings.Cut(w, "=")
		if !ok || !httpapi.ValidWorkspaceName(name) || dir == "" {
			return nil, exitf(exitUsage, "--workspace is NAME=DIR, NAME of a-z, 0-9, '.', '_' and '-': %s", w)
		}
		path, err := workspace(dir, os.LookupEnv)
		if err != nil {
			return nil, exitf(exitUsage, "--workspace %s: no such folder: %s", name, dir)
		}
		if out[name] != "" {
			return nil, exitf(exitUsage, "--workspace %s is given twice", name)
		}
		out[name] = path
	}
	return out, nil
}

// ownData is useData for a folder that has to be there, or be made, and be written to, before anything else is looked at.
func ownData(dir string) error {
	if err := useData(dir); err != nil {
		return err
	}
	root, err := settings.Root(os.LookupEnv)
	if err != nil {
		return err
	}
	return settings.MakeRoot(root)
}

func runServe(ctx context.Context, std *streams, f *serveFlags) error {
	named, err := f.places()
	if err != nil {
		return err
	}
	if f.data != "" {
		if err := ownData(f.data); err != nil {
			return exitf(exitUsage, "--data: %v", err)
		}
	}
	leaveCores()
	p, err := compose(std, &f.common, composition{})
	if err != nil {
		return err
	}
	defer p.close()
	p.all.SetExecutions(session.ExecutionOptions{Cleanup: f.cleanup, Running: f.running, Figures: true, Mask: p.record.Redact})
	cfg := httpapi.Config{
		Sessions: p.all, Workspace: p.workspace, Workspaces: named, Commands: p.executions(true), Hosts: f.hosts, Origins: f.origins,
		Log: p.log, ErrorID: p.errorID, OpenFile: openFile,
		StoreBytes: func() int64 { return storeBytes(p.storeFile) },
	}
	token := &bearer{}
	if f.auth == "token" {
		if token, err = bearerOf(f.tokenFile, filepath.Join(p.root, "http-token")); err != nil {
			return exitf(exitUsage, "%v", err)
		}
		defer token.drop()
	}
	if err := cfg.Commands.Recover(ctx, f.requeue); err != nil {
		p.log.Warn("recovery of executions", "err", err)
		fmt.Fprintf(std.err, "rind: what was open before could not be looked at: %s\n", plainLine(messageOf(err)))
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(strings.Trim(f.host, "[]"), strconv.Itoa(f.port)))
	if err != nil {
		return exitf(exitFailed, "Startup error: %v%s", err, taken(err))
	}
	if err := token.publish(); err != nil {
		_ = ln.Close()
		return exitf(exitUsage, "%v", err)
	}
	if cfg.Token = token.token; cfg.Token != "" {
		p.record.Add(cfg.Token)
	}
	cfg.Port = ln.Addr().(*net.TCPAddr).Port
	api := httpapi.New(cfg)
	sigs := make(chan os.Signal, 2)
	if ends := heeded(); len(ends) > 0 { // Notify without signals takes all of them
		signal.Notify(sigs, ends...)
		defer signal.Stop(sigs)
	}
	ignorePipe() // whoever read where it listens need not read on
	served := make(chan error, 1)
	go func() { served <- api.Serve(ln) }() // ends with the listener
	shown := net.JoinHostPort(strings.Trim(f.host, "[]"), strconv.Itoa(cfg.Port))
	fmt.Fprintf(std.out, "rind HTTP listening on http://%s\n", shown)
	if token.path != "" {
		fmt.Fprintf(std.err, "rind: bearer token in %s\n", token.path)
	}
	select {
	case <-sigs:
	case <-ctx.Done():
	case err := <-served:
		return exitf(exitFailed, "HTTP server ended: %v", err)
	}
	f.stop(p, api, ln, sigs)
	return nil
}

// taken says what to do about a port that somebody else listens on.
func taken(err error) string {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return ""
	}
	return "; another program listens there: end it, or choose another port with --port (0: any free one)"
}

// openFile opens a regular file of a workspace: what lies outside, also by a link, is refused.
func openFile(workspace, path string) (httpapi.File, error) {
	r, err := roots.Open(workspace)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, _, err := r.OpenFile(filepath.FromSlash(path))
	if err != nil {
		return nil, err
	}
	return f, nil
}

// storeBytes is the size of a store's files.
func storeBytes(path string) int64 {
	sum := int64(0)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if info, err := os.Stat(path + suffix); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// stop ends the server gracefully (section 1.2); a second signal goes straight to the end of the streams.
func (f *serveFlags) stop(p *process, api *httpapi.Server, ln net.Listener, sigs <-chan os.Signal) {
	api.Drain()
	_ = ln.Close()
	quiet := make(chan struct{})
	ctx, cancel := context.WithTimeout(context.Background(), f.drain)
	defer cancel()
	go func() { // ends with the drain window
		p.all.WaitExecutions(ctx)
		close(quiet)
	}()
	hurried := false
	select {
	case <-quiet:
	case <-sigs:
		hurried = true
		cancel()
	}
	limit := f.cleanup + 2*time.Second
	if hurried {
		limit = 100 * time.Millisecond
	}
	end, done := context.WithTimeout(context.Background(), limit)
	ended := make(chan struct{})
	go func() {
		if err := p.all.Shutdown(end); err != nil {
			p.log.Warn("shutdown", "err", err)
		}
		close(ended)
	}()
	select {
	case <-ended:
	case <-sigs:
	}
	done()
	bye, over := context.WithTimeout(context.Background(), 2*time.Second)
	defer over()
	api.End(bye)
}
