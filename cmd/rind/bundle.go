package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A piece is one file of a bundle.
type piece struct {
	name string
	what string // in a few words, for the person who decides whether to send it
	data []byte
}

// bundle makes a bundle of what doctor finds, shows what is in it, asks, and writes it.
func bundle(ctx context.Context, std *streams, f *doctorFlags) error {
	if err := checkPlace(std, f); err != nil { // before any work is done for nothing
		return err
	}
	e := examine(ctx, std, f)
	pieces := gather(ctx, e, f)
	e.close()
	if err := contents(std.err, pieces); err != nil {
		return err
	}
	if !f.yes {
		if err := confirm(std, fmt.Sprintf("Write it to %s? [y/N] ", f.shown()), "run it with --yes once you agree to what is listed", "nothing was written"); err != nil {
			return err
		}
	}
	data, err := pack(pieces, time.Now())
	if err != nil {
		return err
	}
	if f.bundle == "-" {
		_, err := std.out.Write(data)
		return err
	}
	if err := place(f.bundle, data, f.force); err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.err, "%s is written (%d bytes). Nobody was sent anything.\n", f.shown(), len(data))
	return err
}

func (f *doctorFlags) shown() string {
	if f.bundle == "-" {
		return "standard output"
	}
	return printable(f.bundle)
}

// checkPlace says why a bundle could not be written.
func checkPlace(std *streams, f *doctorFlags) error {
	if f.bundle == "-" {
		if isTerminal(std.out) {
			return usageError{errors.New("a bundle is no text for a terminal: name a file, or send standard output into one")}
		}
		return nil
	}
	info, err := os.Lstat(f.bundle)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if dir, err := os.Stat(filepath.Dir(f.bundle)); err != nil || !dir.IsDir() {
			return exitf(exitFailed, "the folder of %s does not exist", f.shown())
		}
		return nil
	case err != nil:
		return exitf(exitFailed, "%s cannot be written: %v", f.shown(), err)
	case !info.Mode().IsRegular():
		return exitf(exitFailed, "%s is no file: name another", f.shown())
	case !f.force:
		return exitf(exitFailed, "%s exists: name another file, or replace it with --force", f.shown())
	}
	return nil
}

// contents tells what is in a bundle and what is not.
func contents(out io.Writer, pieces []piece) error {
	if _, err := fmt.Fprintln(out, "The bundle holds:"); err != nil {
		return err
	}
	for _, p := range pieces {
		if _, err := fmt.Fprintf(out, "%8d bytes  %-13s  %s\n", len(p.data), p.name, p.what); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, "It holds no conversation, no contents of files, no keys and no values of the environment. It is plain text: look at it before you send it.")
	return err
}

// bundleFolder is the folder that a bundle unpacks into.
const bundleFolder = "rind-report"

func pack(pieces []piece, now time.Time) ([]byte, error) {
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tar.NewWriter(zip)
	for _, p := range pieces {
		head := &tar.Header{Name: bundleFolder + "/" + p.name, Mode: 0o600, Size: int64(len(p.data)), ModTime: now, Typeflag: tar.TypeReg}
		if err := w.WriteHeader(head); err != nil {
			return nil, fmt.Errorf("pack %s: %w", p.name, err)
		}
		if _, err := w.Write(p.data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", p.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return b.Bytes(), nil
}

// place writes a file that only its owner can read, whole or not at all. Without force a file that is there by now stays.
func place(path string, data []byte, force bool) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".rind-report-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	defer func() {
		if rerr := os.Remove(f.Name()); err == nil && rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = fmt.Errorf("write the bundle: %w", rerr)
		}
	}()
	if _, err := f.Write(data); err != nil {
		f.Close()
		return fmt.Errorf("write the bundle: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	if !force {
		if err := os.Link(f.Name(), path); err == nil || errors.Is(err, fs.ErrExist) {
			if err != nil {
				return exitf(exitFailed, "%s exists: name another file, or replace it with --force", printable(path))
			}
			return nil
		} // else a file system without links: what lay there was looked for already
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	return nil
}
