package dispatcher

import (
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// maxFile bounds file/read and file/write (docs/protocol/rind-v2.md section 4.10).
const maxFile = 8 << 20

// errOutside refuses a path that leaves the workspace.
var errOutside = rindv2.Bad("path must be relative to the workspace and stay inside it.")

// file runs f with a handle on the session's workspace root and a path in it, which it cannot leave.
func (k *call) file(name string, f func(root *os.Root, name string) (any, error)) {
	if strings.ContainsRune(name, 0) || strings.HasPrefix(name, "/") || filepath.IsAbs(name) || name != "" && !filepath.IsLocal(filepath.FromSlash(name)) {
		k.Fail(errOutside)
		return
	}
	name = path.Clean(name)
	k.inspect(func(v *session.View) {
		ws := v.Workspace
		k.Background(func() {
			root, err := os.OpenRoot(ws)
			if err != nil {
				k.Fail(protocol.Errorf(protocol.NotFound, "Workspace directory does not exist: %s", ws))
				return
			}
			defer root.Close()
			res, err := f(root, filepath.FromSlash(name))
			k.Settle(res, fileError(err, name))
		})
	})
}

func fileError(err error, name string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return protocol.Errorf(protocol.NotFound, "File not found: %s", name)
	case strings.Contains(err.Error(), "escapes"):
		return errOutside
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return rindv2.Bad("%s cannot be used: %s.", protocol.Prefix(name, 200), e.Error())
	}
	return err
}

func fileList(k *call, p *rindv2.FileListParams) {
	k.file(p.Path, func(root *os.Root, name string) (any, error) {
		info, err := root.Stat(name)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, rindv2.Bad("%s is not a folder.", name)
		}
		list, err := fs.ReadDir(root.FS(), filepath.ToSlash(name))
		if err != nil {
			return nil, err
		}
		out := []rindv2.FileEntry{}
		for _, d := range list {
			e := rindv2.FileEntry{Name: d.Name(), Type: "file"}
			switch {
			case d.IsDir():
				e.Type = "dir"
			case d.Type().IsRegular():
				if info, err := d.Info(); err == nil {
					e.Size = info.Size()
				}
			case d.Type()&fs.ModeSymlink != 0:
				info, err := root.Stat(filepath.Join(name, d.Name()))
				if err != nil {
					continue // leads outside, or nowhere
				}
				if info.IsDir() {
					e.Type = "dir"
				} else {
					e.Size = info.Size()
				}
			default:
				continue
			}
			out = append(out, e)
		}
		return rindv2.FileList{Entries: out}, nil
	})
}

func fileRead(k *call, p *rindv2.FileParams) {
	k.file(p.Path, func(root *os.Root, name string) (any, error) {
		info, err := root.Stat(name)
		if err != nil {
			return nil, err
		}
		switch {
		case !info.Mode().IsRegular():
			return nil, rindv2.Bad("%s is not a file.", name)
		case info.Size() > maxFile:
			return nil, rindv2.Bad("%s is larger than 8 MiB.", name)
		}
		f, err := root.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
		if err != nil {
			return nil, err
		}
		if len(data) > maxFile {
			return nil, rindv2.Bad("%s is larger than 8 MiB.", name)
		}
		kind := mime.TypeByExtension(filepath.Ext(name))
		if kind == "" {
			kind = http.DetectContentType(data)
		}
		return rindv2.FileContent{Content: data, MIME: kind, Size: len(data)}, nil
	})
}

func fileWrite(k *call, p *rindv2.FileWriteParams) {
	if len(p.Content) > maxFile {
		k.Fail(rindv2.Bad("The content is larger than 8 MiB."))
		return
	}
	k.file(p.Path, func(root *os.Root, name string) (any, error) {
		slash := filepath.ToSlash(name)
		if !strings.HasPrefix(slash, "uploads/") {
			return nil, rindv2.Bad("file/write writes only under uploads/.")
		}
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return nil, err
		}
		if info, err := root.Lstat(name); err == nil && info.IsDir() {
			return nil, rindv2.Bad("%s is a folder.", slash)
		}
		tmp := filepath.Join(filepath.Dir(name), ".tmp-"+protocol.RandomIDs{}.Hex32()) // beside it, whatever length its name has
		if err := root.WriteFile(tmp, p.Content, 0o644); err != nil {
			_ = root.Remove(tmp)
			return nil, err
		}
		if err := root.Rename(tmp, name); err != nil {
			_ = root.Remove(tmp)
			return nil, err
		}
		return rindv2.FileWritten{Path: slash, Size: len(p.Content)}, nil
	})
}
