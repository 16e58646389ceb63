package proc

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a job object (preview): what is in it ends when its last handle is closed, also by the death of this process. A child joins it
// right after its start; what it starts before that stays out.
type group struct{ job windows.Handle }

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// onlyStandardFiles has nothing to do: handles are inherited by name only.
func onlyStandardFiles() {}

func (g *group) adopt(p *os.Process) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		var h windows.Handle
		if h, err = windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid)); err == nil {
			err = windows.AssignProcessToJobObject(job, h)
			_ = windows.CloseHandle(h)
		}
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return
	}
	g.job = job
}

func (g *group) release() {
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
		g.job = 0
	}
}

func (g *group) kill(cmd *exec.Cmd) {
	if g.job != 0 {
		_ = windows.TerminateJobObject(g.job, 1)
		return
	}
	_ = cmd.Process.Kill()
}

// terminate kills: there is no way to ask that every program understands.
func (g *group) terminate(cmd *exec.Cmd) { g.kill(cmd) }

func (p *Process) awaitEnd() error { return p.cmd.Wait() }

func (p *Process) reap(err error) error { return err }

func (p *Process) leftBehind() Left { return Left{} }

func signalStrays(string, bool) {}

func endStrays(string, time.Time) bool { return true }

func killLeader(int) {} // its job has ended it

func exitOf(cmd *exec.Cmd) Exit {
	if cmd.ProcessState == nil {
		return Exit{Code: -1}
	}
	return Exit{Code: cmd.ProcessState.ExitCode()}
}

// TryLock takes the OS lock on f for as long as it is open, alone or together with others that share it, instead of the one f has; false when
// somebody has it alone, or shares what is asked for alone. It waits for nobody.
func TryLock(f *os.File, alone bool) (bool, error) {
	h := windows.Handle(f.Fd())
	_ = windows.UnlockFileEx(h, 0, 1, 0, new(windows.Overlapped)) // fails where there is none
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if alone {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(h, how, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}
