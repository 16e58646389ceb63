package dispatcher

import (
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// maxFile bounds file/read and file/write (docs/protocol/rind-v2.md section 4.10).
const maxFile = 8 << 20

// file runs f with a handle on the session's workspace root and the request's path, which cannot leave it.
func (k *call) file(must bool, f func(root *os.Root, name string) (any, error)) {
	name, ok := k.params.Text("path")
	switch {
	case !ok || must && name == "":
		k.fail(rindv2.Bad("path is required."))
		return
	case strings.ContainsRune(name, 0) || strings.HasPrefix(name, "/") || filepath.IsAbs(name) || name != "" && !filepath.IsLocal(filepath.FromSlash(name)):
		k.fail(rindv2.Bad("path must be relative to the workspace and stay inside it."))
		return
	}
	name = path.Clean(name)
	k.inspect(func(v *session.View) {
		ws := v.Workspace
		k.background(func() {
			root, err := os.OpenRoot(ws)
			if err != nil {
				k.fail(protocol.Errorf(protocol.NotFound, "Workspace directory does not exist: %s", ws))
				return
			}
			defer root.Close()
			res, err := f(root, filepath.FromSlash(name))
			k.settle(res, fileError(err, name))
		})
	})
}

func fileError(err error, name string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return protocol.Errorf(protocol.NotFound, "File not found: %s", name)
	case errors.Is(err, fs.ErrPermission), strings.Contains(err.Error(), "escapes"):
		return rindv2.Bad("path must be relative to the workspace and stay inside it.")
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return rindv2.Bad("%s cannot be used: %s", name, path.Base(err.Error()))
	}
	return err
}

func fileList(k *call) {
	type entry struct {
		Name string `json:"name"`
		Type string `json:"type"`
		Size int64  `json:"size"`
	}
	k.file(false, func(root *os.Root, name string) (any, error) {
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
		out := []entry{}
		for _, d := range list {
			e := entry{Name: d.Name(), Type: "file"}
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
		return struct {
			Entries []entry `json:"entries"`
		}{out}, nil
	})
}

func fileRead(k *call) {
	k.file(true, func(root *os.Root, name string) (any, error) {
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
		return struct {
			Content string `json:"content_base64"`
			MIME    string `json:"mime"`
			Size    int    `json:"size"`
		}{base64.StdEncoding.EncodeToString(data), kind, len(data)}, nil
	})
}

func fileWrite(k *call) {
	content, ok := k.params.Text("content_base64")
	if !ok || !k.params.Has("content_base64") {
		k.fail(rindv2.Bad("content_base64 is required."))
		return
	}
	data, err := base64.StdEncoding.DecodeString(content)
	if err != nil {
		k.fail(rindv2.Bad("content_base64 is not valid base64."))
		return
	}
	if len(data) > maxFile {
		k.fail(rindv2.Bad("The content is larger than 8 MiB."))
		return
	}
	k.file(true, func(root *os.Root, name string) (any, error) {
		slash := filepath.ToSlash(name)
		if !strings.HasPrefix(slash, "uploads/") {
			return nil, rindv2.Bad("file/write writes only under uploads/.")
		}
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return nil, err
		}
		tmp := name + ".tmp-" + protocol.RandomIDs{}.Hex32()[:8]
		if err := root.WriteFile(tmp, data, 0o644); err != nil {
			_ = root.Remove(tmp)
			return nil, err
		}
		if err := root.Rename(tmp, name); err != nil {
			_ = root.Remove(tmp)
			return nil, err
		}
		return struct {
			Path string `json:"path"`
			Size int    `json:"size"`
		}{slash, len(data)}, nil
	})
}
