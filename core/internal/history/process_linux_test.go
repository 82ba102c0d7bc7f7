package history_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/history"
)

// workerTask is the task of a worker process.
type workerTask struct {
	Load    load
	Process int
	Seed    uint64
	Epoch   time.Duration
	Redis   string // host:port
	Shared  string // the file with the registers
	Log     string // the file for the events
}

// workerMain is the main function of a worker process. It works until its input is closed.
func workerMain(encoded string) int {
	var task workerTask
	if err := json.Unmarshal([]byte(encoded), &task); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if err := task.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (task workerTask) run() error {
	shared, err := os.OpenFile(task.Shared, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer shared.Close()
	file, err := os.OpenFile(task.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	log, now := history.NewLog(file), clockSince(task.Epoch)
	log.Note(history.Event{
		Kind: history.Finish, Process: task.Process, Begin: now(), End: now(), Note: task.work(registerFile{shared}, now, log),
	})
	return log.Err()
}

// work runs the worker. It returns a description of any problem at its end.
func (task workerTask) work(shared registers, now func() time.Duration, log *history.Log) (wrong string) {
	rdb := redis.NewClient(&redis.Options{Addr: task.Redis})
	locks, err := core.New(rdb, core.WithWatchdog(task.Load.Watchdog), core.WithBackendTimeout(task.Load.Backend), core.WithObserver(refusals{now}.observer()))
	if err != nil {
		return err.Error()
	}
	w := &worker{
		load: task.Load, process: task.Process, seed: task.Seed, locks: locks,
		shared: shared, now: now, note: log.Note, stop: make(chan struct{}),
	}
	var watching sync.WaitGroup
	watching.Go(func() { watchStalls(task.Process, now, log.Note, w.stop) })
	w.start()
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := w.finish(context.Background()); err != nil {
		return "close: " + err.Error()
	}
	watching.Wait()
	_ = rdb.Close()
	return text(goleak.Find())
}

// registerFile is a file with the registers, which all processes share.
type registerFile struct{ *os.File }

func (f registerFile) load(slot int) uint64 {
	var b [8]byte
	if _, err := f.ReadAt(b[:], int64(slot)*8); err != nil {
		panic(err)
	}
	return binary.LittleEndian.Uint64(b[:])
}

func (f registerFile) store(slot int, value uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], value)
	if _, err := f.WriteAt(b[:], int64(slot)*8); err != nil {
		panic(err)
	}
}

func newRegisterFile(dir string) (path string, err error) {
	path = filepath.Join(dir, "registers")
	return path, os.WriteFile(path, make([]byte, 8*len(keys)), 0o600)
}

// workerProcess is a worker as its parent sees it.
type workerProcess struct {
	workerTask

	cmd    *exec.Cmd
	stdin  io.Closer
	output string
	exited chan struct{}
	err    error // the result of the process; read it after exited is closed
}

// startWorker starts this binary as a worker. The kernel kills the worker when its parent dies, even if the
// worker is stopped.
func startWorker(task workerTask) (*workerProcess, error) {
	encoded, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0]) // exits when its input is closed
	cmd.Env = append(os.Environ(), workerEnv+"="+string(encoded))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p := &workerProcess{workerTask: task, cmd: cmd, output: task.Log + ".output", exited: make(chan struct{})}
	out, err := os.Create(p.output)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own descriptor
	cmd.Stdout, cmd.Stderr = out, out
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.exited)
		p.err = cmd.Wait()
	}()
	return p, nil
}

// pause stops the process for d.
func (p *workerProcess) pause(d time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(d) // the length of the fault
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
}

// kill ends the process at once.
func (p *workerProcess) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// finish makes the worker finish.
func (p *workerProcess) finish() { _ = p.stdin.Close() }

// await waits for the end of a worker that was asked to finish. If it does not end in time, await
// makes it print its goroutines.
func (p *workerProcess) await(limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		<-p.exited
	}
	if p.err == nil {
		return nil
	}
	output, _ := os.ReadFile(p.output)
	return fmt.Errorf("worker %d: %w\n%s", p.Process, p.err, output)
}
