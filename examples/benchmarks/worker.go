package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"
)

// workerEnv makes this program a worker process of itself. Parent and worker exchange lines of JSON. The parent sends a
// job first; the job defines the rest.
const workerEnv = "INTERLOCK_BENCHMARKS_WORKER"

// job is the first line to a worker. One of the pointers is set.
type job struct {
	Contest *contest
	Load    *load
	Wakeup  *wakeup
	Held    *held
	Profile string // file for a CPU profile; the worker adds its process id
}

// runWorker is the main function of a worker process.
func runWorker(ctx context.Context) error {
	l := link{decoder: json.NewDecoder(bufio.NewReader(os.Stdin)), encoder: json.NewEncoder(os.Stdout)}
	var j job
	if err := l.receive(&j); err != nil {
		return err
	}
	if j.Profile == "" {
		return j.serve(ctx, l)
	}
	f, err := os.Create(fmt.Sprintf("%s-%d.pprof", j.Profile, os.Getpid()))
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return errors.Join(err, f.Close())
	}
	err = j.serve(ctx, l)
	pprof.StopCPUProfile()
	return errors.Join(err, f.Close())
}

func (j job) serve(ctx context.Context, l link) error {
	switch {
	case j.Contest != nil:
		return j.Contest.serve(ctx, l)
	case j.Load != nil:
		return j.Load.serve(ctx, l)
	case j.Wakeup != nil:
		return j.Wakeup.serve(ctx, l)
	case j.Held != nil:
		return j.Held.serve(ctx, l)
	default:
		return fmt.Errorf("the worker got no job")
	}
}

// link is one end of the connection.
type link struct {
	decoder *json.Decoder
	encoder *json.Encoder
}

func (l link) send(v any) error    { return l.encoder.Encode(v) }
func (l link) receive(v any) error { return l.decoder.Decode(v) }

// worker is the parent's view of a worker process.
type worker struct {
	link
	stdin io.Closer
	cmd   *exec.Cmd
}

// start starts a worker process for a contender.
func (e env) start(ctx context.Context, by contender, j job) (*worker, error) {
	program := by.binary
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	if e.profiles != "" {
		name := strings.NewReplacer(":", "-", "/", "-", " ", "-").Replace(e.key + "-" + by.name)
		j.Profile = filepath.Join(e.profiles, name)
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), workerEnv+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &worker{link: link{decoder: json.NewDecoder(stdout), encoder: json.NewEncoder(stdin)}, stdin: stdin, cmd: cmd}
	return w, w.send(j)
}

func (w *worker) wait() error {
	_ = w.stdin.Close()
	return w.cmd.Wait()
}

// serve runs a contest in a worker. It reports that it is ready, receives the start time and answers with its tally.
func (c *contest) serve(ctx context.Context, l link) error {
	var failed error
	t, err := contend(ctx, c, func() time.Time {
		var start time.Time
		failed = l.send("ready")
		if failed == nil {
			failed = l.receive(&start)
		}
		return start
	})
	if err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	return l.send(t)
}

// contendIn runs contests for one key at the same time, each in a separate process, and returns their tallies.
func (e env) contendIn(ctx context.Context, contests []*contest) ([]tally, error) {
	var workers []*worker
	defer func() {
		for _, w := range workers {
			_ = w.wait() // its tally or an error has arrived
		}
	}()
	for _, c := range contests {
		w, err := e.start(ctx, c.by, job{Contest: c})
		if err != nil {
			return nil, err
		}
		workers = append(workers, w)
	}
	var ready string
	for _, w := range workers {
		if err := w.receive(&ready); err != nil {
			return nil, fmt.Errorf("worker: %w", err)
		}
	}
	start := time.Now().Add(100 * time.Millisecond)
	for _, w := range workers {
		if err := w.send(start); err != nil {
			return nil, err
		}
	}
	tallies := make([]tally, len(workers))
	for i, w := range workers {
		if err := w.receive(&tallies[i]); err != nil {
			return nil, fmt.Errorf("worker: %w", err)
		}
	}
	return tallies, nil
}
