package settings

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
)

// Bounds of what a workspace may enable.
const (
	maxEnabledFiles = 512
	maxEnabledBytes = 4 << 20
)

// enabling are the files and folders by which a workspace could make the runtime run or send something.
var enabling = []string{".mcp.json", ".rind/settings.json", ".rind/skills"}

// Content is what a workspace would enable if it were trusted, read once: what is used must come from here, so that nothing else
// than what was hashed takes effect.
type Content struct {
	Files []ContentFile // sorted by path
	Hash  string        // 64 hexadecimal digits; of no files too
}

// ContentFile is one file of a Content.
type ContentFile struct {
	Path string // slash path from the workspace root
	Data []byte
}

// Enables reads what the workspace enables. The file system should be rooted in the workspace (os.Root). It is an error if there is
// a link or a special file among it, or more than 512 files or 4 MiB: such a workspace cannot be trusted.
func Enables(workspace fs.FS) (Content, error) {
	var c Content
	left := int64(maxEnabledBytes)
	for _, top := range enabling {
		there, err := plain(workspace, top)
		if err != nil {
			return Content{}, fmt.Errorf("read what the workspace enables: %w", err)
		}
		if !there {
			continue
		}
		err = fs.WalkDir(workspace, top, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir():
				return nil
			case !d.Type().IsRegular():
				return notPlain(name)
			case len(c.Files) == maxEnabledFiles:
				return fmt.Errorf("more than %d files lie in %s", maxEnabledFiles, top)
			}
			data, err := readBounded(workspace, name, left)
			if err != nil {
				return err
			}
			left -= int64(len(data))
			c.Files = append(c.Files, ContentFile{Path: name, Data: data})
			return nil
		})
		if err != nil {
			return Content{}, fmt.Errorf("read what the workspace enables: %w", err)
		}
	}
	slices.SortFunc(c.Files, func(a, b ContentFile) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	})
	c.Hash = digest(c.Files)
	return c, nil
}

// plain tells whether top is there, and refuses it where it or its folder is a link: a walk would follow that.
func plain(workspace fs.FS, top string) (bool, error) {
	for _, name := range []string{path.Dir(top), top} {
		info, err := fs.Lstat(workspace, name)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if name != top && !info.IsDir() || !info.IsDir() && !info.Mode().IsRegular() {
			return false, notPlain(name)
		}
	}
	return true, nil
}

func notPlain(name string) error {
	return fmt.Errorf("%s is a link or a special file, which cannot be trusted; put the file itself in its place", name)
}

func readBounded(workspace fs.FS, name string, left int64) ([]byte, error) {
	f, err := workspace.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, left+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(data)) > left {
		return nil, fmt.Errorf("what the workspace enables is larger than %d bytes", maxEnabledBytes)
	}
	return data, nil
}

// digest binds names, sizes and bytes, so that no two different sets of files share one.
func digest(files []ContentFile) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%d:%s%d:", len(f.Path), f.Path, len(f.Data))
		h.Write(f.Data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// File gives the bytes of one file of the content, nil where it has none of that path.
func (c Content) File(path string) []byte {
	for _, f := range c.Files {
		if f.Path == path {
			return f.Data
		}
	}
	return nil
}

// Paths lists the files of the content, sorted.
func (c Content) Paths() []string {
	paths := make([]string, len(c.Files))
	for i, f := range c.Files {
		paths[i] = f.Path
	}
	return paths
}

// Trusted tells whether a person trusted exactly this content of the workspace: changing, adding or removing a file asks again.
// workspace is its absolute path with links resolved.
func (s Settings) Trusted(workspace string, c Content) bool {
	h, ok := s.doc.TrustedWorkspaces[workspace]
	return ok && h == c.Hash
}

// Trust writes into the settings file at path that a person trusts this content of the workspace (absolute, links resolved).
func Trust(path, workspace string, c Content) error {
	return Set(path, "trustedWorkspaces."+workspace, c.Hash)
}

// Distrust takes that back.
func Distrust(path, workspace string) error {
	return Unset(path, "trustedWorkspaces."+workspace)
}

// With lays a trusted workspace's own settings over the user's: each member it has wins, entries of `providers` by name. It never
// changes whom the user trusts. The error is an *Error that names the workspace's file.
func (s Settings) With(c Content, workspace string) (Settings, error) {
	const own = ".rind/settings.json"
	src := c.File(own)
	if src == nil || !s.Trusted(workspace, c) {
		return s, nil
	}
	o, err := Parse(path.Join(workspace, own), src)
	if err != nil {
		return s, err
	}
	return s.over(o), nil
}
