package proc

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// leastVersion is the first version of Landlock that can refuse truncating a file: without it, "may not be written" is not true (Linux 6.2).
const leastVersion = 3

// Rights of Landlock, by what they are for.
const (
	readFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	readDir  = unix.LANDLOCK_ACCESS_FS_READ_DIR
	read     = readFile | readDir

	writeFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	write     = writeFile | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_REFER

	device = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV // from version 5 on; before, it was not restricted

	onFiles = readFile | writeFile | device // a rule about a file takes no others
)

// devices are what programs open without meaning a file, and terminals those with Bounds.Devices.
var (
	devices   = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
	terminals = []string{"/dev/ptmx", "/dev/pts", "/dev/shm", "/dev/mqueue"}
)

// Landlock reports the version of Landlock that this kernel offers, and Spec.Bounds needs; 0 for none that is enough.
func Landlock() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || int(v) < leastVersion {
		return 0
	}
	return int(v)
}

// restrict takes rights from the calling thread, for good, and so from what it starts. The goroutine stays on the thread, and the thread ends
// with it.
func (b *Bounds) restrict() error {
	version := Landlock()
	if version == 0 {
		return errors.New("this kernel offers no sandbox")
	}
	handled := uint64(read | write)
	if version >= 5 {
		handled |= device
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr.Handled_access_fs), 0)
	if errno != 0 {
		return fmt.Errorf("create ruleset: %w", errno)
	}
	defer unix.Close(int(fd))
	if err := b.rules(ruleset{fd: int(fd), handled: handled}); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("restrict: %w", errno)
	}
	return nil
}

// ruleset is a set of rights being put together.
type ruleset struct {
	fd      int
	handled uint64
}

// grant gives rights on path and all below it. What is gone, or cannot be looked at, gets none.
func (r ruleset) grant(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil //nolint:nilerr // no right is given
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return nil // what it leads to has rules of its own
	case unix.S_IFDIR:
	default:
		rights &= onFiles
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.handled, Parent_fd: int32(fd)}
	if attr.Allowed_access == 0 {
		return nil
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 && !errors.Is(errno, unix.EBADFD) { // EBADFD: of a file system that has no paths
		return fmt.Errorf("rule for %s: %w", path, errno)
	}
	return nil
}
