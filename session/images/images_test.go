package images_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/images"
)

const id = session.SessionID("20260102_030405_00000001")

// below names the output folder of a session in a new folder.
func below(t testing.TB) (top string, dir func(session.SessionID) string) {
	t.Helper()
	top = t.TempDir()
	return top, func(id session.SessionID) string { return filepath.Join(top, "outputs", string(id)) }
}

func keep(t testing.TB, s *images.Store, data []byte) string {
	t.Helper()
	digest, err := s.Keep(t.Context(), id, data)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// held lists the images of id by name, with their sizes.
func held(t testing.TB, dir string) map[string]int64 {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "before"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = info.Size()
	}
	return out
}

func TestWhatIsKeptComesBackByteForByteAlsoInAnotherProcess(t *testing.T) {
	_, dir := below(t)
	s := images.New(dir, images.Options{})
	for _, data := range [][]byte{nil, []byte("text\r\n"), {0, 1, 255, 0}, bytes.Repeat([]byte("x"), 3<<20)} {
		digest := keep(t, s, data)
		if again := keep(t, s, data); again != digest || digest != protocol.Digest(data) {
			t.Errorf("digests %s, %s", digest, again)
		}
		got, err := images.New(dir, images.Options{}).Image(t.Context(), id, digest)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	for name := range held(t, dir(id)) {
		if len(name) != 64 {
			t.Errorf("left behind: %s", name)
		}
	}
	if _, err := s.Image(t.Context(), "20260102_030405_00000002", protocol.Digest(nil)); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("in another session: %v", err)
	}
}

func TestImagesAreTheOwnersOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits here")
	}
	top, dir := below(t)
	keep(t, images.New(dir, images.Options{}), []byte("x"))
	err := filepath.WalkDir(filepath.Join(top, "outputs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsTooLargeIsNamedButNotKept(t *testing.T) {
	_, dir := below(t)
	s := images.New(dir, images.Options{MaxImage: 10})
	large := keep(t, s, []byte("12345678901"))
	fits := keep(t, s, []byte("1234567890"))
	if large != protocol.Digest([]byte("12345678901")) {
		t.Errorf("digest %s", large)
	}
	if _, err := s.Image(t.Context(), id, large); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("the large one: %v", err)
	}
	if _, err := s.Image(t.Context(), id, fits); err != nil {
		t.Errorf("the one that fits: %v", err)
	}
}

func TestADamagedImageIsNotFoundAndCanBeKeptAgain(t *testing.T) {
	for name, damage := range map[string]string{"other bytes": "1334567890", "cut": "12345", "longer": "1234567890x", "empty": ""} {
		t.Run(name, func(t *testing.T) {
			_, dir := below(t)
			s := images.New(dir, images.Options{})
			digest := keep(t, s, []byte("1234567890"))
			if err := os.WriteFile(filepath.Join(dir(id), "before", digest), []byte(damage), 0o600); err != nil {
				t.Fatal(err)
			}
			if data, err := s.Image(t.Context(), id, digest); !errors.Is(err, session.ErrNotFound) {
				t.Fatalf("%q, %v", data, err)
			}
			keep(t, s, []byte("1234567890"))
			if data, err := s.Image(t.Context(), id, digest); err != nil || string(data) != "1234567890" {
				t.Errorf("after it was kept again: %q, %v", data, err)
			}
		})
	}
}

func TestADigestThatIsNoneLeadsNowhere(t *testing.T) {
	top, dir := below(t)
	s := images.New(dir, images.Options{})
	keep(t, s, []byte("x"))
	if err := os.WriteFile(filepath.Join(top, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, digest := range []string{"", "../../../secret", "/etc/passwd", strings.Repeat("Z", 64), strings.Repeat("a", 63), strings.Repeat("a", 64)} {
		if data, err := s.Image(t.Context(), id, digest); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%q: %q, %v", digest, data, err)
		}
	}
	for _, bad := range []session.SessionID{"", "..", "../x", "a/b"} {
		if _, err := s.Keep(t.Context(), bad, []byte("x")); err == nil {
			t.Errorf("session %q keeps something", bad)
		}
	}
}

func TestTheOldestImagesGoFirstWhenTheBoundIsReached(t *testing.T) {
	_, dir := below(t)
	s := images.New(dir, images.Options{MaxImage: 100, MaxSession: 1000})
	var order []string
	for i := range 40 {
		data := fmt.Appendf(nil, "%0100d", i)
		order = append(order, keep(t, s, data))
		at := time.Now().Add(time.Duration(i-1000) * time.Hour)
		if err := os.Chtimes(filepath.Join(dir(id), "before", order[i]), at, at); err != nil {
			t.Fatal(err)
		}
		if i == 20 { // kept once more: it is among the newest now
			keep(t, s, fmt.Appendf(nil, "%0100d", 15))
		}
		sum := int64(0)
		for _, size := range held(t, dir(id)) {
			sum += size
		}
		if sum > 1000 || i > 12 && sum < 800 {
			t.Fatalf("after %d images there are %d bytes", i+1, sum)
		}
	}
	left := held(t, dir(id))
	for i, digest := range order {
		_, here := left[digest]
		if want := i >= 32 || i == 15; here != want && (i < 30 || i >= 33) {
			t.Errorf("image %d: there %v", i, here)
		}
	}
}

func TestSeveralProcessesAtOnceLoseNothingAndStayNearTheBound(t *testing.T) {
	_, dir := below(t)
	const bound = 64 << 10
	var wg sync.WaitGroup
	for p := range 4 {
		wg.Go(func() {
			s := images.New(dir, images.Options{MaxSession: bound})
			r := rand.New(rand.NewPCG(7, uint64(p)))
			for range 60 {
				data := bytes.Repeat([]byte{byte(r.IntN(40))}, 2000+r.IntN(3)*500)
				digest, err := s.Keep(context.Background(), id, data)
				if err != nil {
					t.Errorf("keep: %v", err)
					return
				}
				got, err := s.Image(context.Background(), id, digest)
				if err != nil && !errors.Is(err, session.ErrNotFound) || err == nil && !bytes.Equal(got, data) {
					t.Errorf("image: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	sum := int64(0)
	for name, size := range held(t, dir(id)) {
		if len(name) != 64 {
			t.Errorf("left behind: %s", name)
		}
		sum += size
	}
	if sum > 2*bound {
		t.Errorf("%d bytes are kept", sum)
	}
}

func TestAnUnfinishedImageOfAKilledProcessIsSweptInTime(t *testing.T) {
	_, dir := below(t)
	keep(t, images.New(dir, images.Options{}), []byte("x"))
	old, fresh := filepath.Join(dir(id), "before", ".new-1"), filepath.Join(dir(id), "before", ".new-2")
	for _, path := range []string{old, fresh} {
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, at, at); err != nil {
		t.Fatal(err)
	}
	keep(t, images.New(dir, images.Options{}), []byte("y"))
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old one: %v", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("the one that may be in the making: %v", err)
	}
}

func TestAFolderThatCannotBeUsedIsAnErrorAndNothingIsKept(t *testing.T) {
	top, dir := below(t)
	if err := os.WriteFile(filepath.Join(top, "outputs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if digest, err := images.New(dir, images.Options{}).Keep(t.Context(), id, []byte("x")); err == nil {
		t.Errorf("kept as %s where no folder can be", digest)
	}
	nowhere := images.New(func(session.SessionID) string { return "" }, images.Options{})
	if _, err := nowhere.Keep(t.Context(), id, []byte("x")); err == nil {
		t.Error("kept without a folder")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("given up")
	cancel(gone)
	_, dir = below(t)
	if _, err := images.New(dir, images.Options{}).Keep(ctx, id, []byte("x")); !errors.Is(err, gone) {
		t.Errorf("a call that was given up: %v", err)
	}
}
