package modelhttp

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// transport makes the connections: proxies of the environment, the system's authorities and those of CAFile, bounded waits.
func transport(cfg Config) (*http.Transport, error) {
	authorities, err := authorities(cfg)
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: cfg.Connect, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     authorities,
		TLSHandshakeTimeout: cfg.Connect,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     30 * time.Second,
		DisableCompression:  true, // a compressed stream arrives in lumps
	}, nil
}

func authorities(cfg Config) (*tls.Config, error) {
	if cfg.CAFile == "" {
		return nil, nil // no file: the system authorities
	}
	pem, err := certificates(cfg.CAFile)
	if err != nil {
		return nil, fmt.Errorf("provider %s: caFile: %w", cfg.Name, err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("provider %s: caFile %s holds no certificate", cfg.Name, cfg.CAFile)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// largestCA bounds a file of certificates; those of whole systems have a quarter of a MiB.
const largestCA = 16 << 20

// certificates reads a file. What is no file is not opened: that may wait for ever.
func certificates(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case info.Size() > largestCA:
		return nil, fmt.Errorf("%s is larger than %d MiB", path, largestCA>>20)
	}
	return os.ReadFile(path)
}

// sameHost follows redirects only where the key and the conversation may go, and only as the same request: anywhere else the redirect
// itself is the answer.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	if !strings.EqualFold(req.URL.Host, first.URL.Host) || req.Method != first.Method || len(via) > 3 ||
		first.URL.Scheme == "https" && req.URL.Scheme != "https" {
		return http.ErrUseLastResponse
	}
	return nil
}

// checkHeaders refuses what net/http would refuse with each request. Errors name headers, never their values.
func checkHeaders(cfg Config) error {
	if !fieldValue(cfg.Key) {
		return fmt.Errorf("provider %s: the key holds characters no key has; set it again", cfg.Name)
	}
	for name, value := range cfg.Headers {
		if !token(name) {
			return fmt.Errorf("provider %s: %q is no name of a header", cfg.Name, name)
		}
		if !fieldValue(value) {
			return fmt.Errorf("provider %s: the value of header %s holds control characters", cfg.Name, name)
		}
	}
	return nil
}

func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}

func fieldValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
