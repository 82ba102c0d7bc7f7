package firsthour_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/format"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// limit is the time for a block, in which a machine may have to compile everything.
const limit = 5 * time.Minute

// reader is a reader of the page, with an empty folder.
type reader struct {
	t      *testing.T
	folder string
	env    []string
	ports  *strings.Replacer // replaces the ports of the page by free ones
	web    string            // the address of the routes

	last    block // with commands
	output  []byte
	service *service
	logged  int // size of the service's output before the last block
}

func newReader(t *testing.T) *reader {
	t.Helper()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("INTERLOCK_REQUIRE_REDIS") == "1" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	ports := freePorts(t, 3)
	r := &reader{
		t: t, folder: filepath.Join(t.TempDir(), "shop"), service: &service{},
		ports: strings.NewReplacer("../interlock", root, "8080", ports[0], "9090", ports[1], "6060", ports[2]),
		web:   net.JoinHostPort("localhost", ports[0]),
		env:   append(os.Environ(), "GOWORK=off", "REDIS_URL=", "GOFLAGS="+os.Getenv("GOFLAGS")+" -ldflags=-w"),
	}
	if err := os.Mkdir(r.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	r.installProtoc()
	t.Cleanup(func() { _ = r.service.stop() })
	return r
}

func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	for range n {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "localhost:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		ports = append(ports, port)
	}
	return ports
}

// installProtoc puts a stand-in for protoc on PATH if protoc is missing: the generator of examples/declared, which uses
// the same plugins.
func (r *reader) installProtoc() {
	r.t.Helper()
	if _, err := exec.LookPath("protoc"); err == nil {
		return
	}
	if os.Getenv("INTERLOCK_REQUIRE_PROTOC") == "1" {
		r.t.Fatal("no protoc on PATH")
	}
	bin := r.t.TempDir()
	script := "#!/bin/sh\nmkdir -p orderspb && " + bin + "/gen shop.proto protoc-gen-go protoc-gen-go-grpc && mv shop*.pb.go orderspb\n"
	build := exec.CommandContext(r.t.Context(), "go", "build", "-o", filepath.Join(bin, "gen"), "../declared/orderspb/gen")
	if out, err := build.CombinedOutput(); err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(bin, "protoc"), []byte(script), 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.env = append(r.env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func (r *reader) read(b block, name string) string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.folder, filepath.FromSlash(name)))
	if err != nil {
		r.t.Fatalf("README.md:%d: %v", b.line, err)
	}
	return string(text)
}

// write replaces a file by renaming, like an editor, so that a rule file is never read halfway. A Go file has to be formatted.
func (r *reader) write(b block, name, text string) {
	r.t.Helper()
	if strings.HasSuffix(name, ".go") {
		formatted, err := format.Source([]byte(text))
		if err != nil {
			r.t.Fatalf("README.md:%d: %s: %v", b.line, name, err)
		}
		if string(formatted) != text {
			r.t.Errorf("README.md:%d: gofmt writes %s as:\n%s", b.line, name, formatted)
		}
	}
	path := filepath.Join(r.folder, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path+".new", []byte(text), 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		r.t.Fatalf("README.md:%d: %v", b.line, err)
	}
}

// find returns the only line of a file that contains line, or the function that begins there, and the text before and
// after it.
func (r *reader) find(b block, file, line string) (before, found, after string) {
	r.t.Helper()
	text := r.read(b, file)
	if strings.Count(text, line) != 1 {
		r.t.Fatalf("README.md:%d: %q is %d times in %s:\n%s", b.line, line, strings.Count(text, line), file, text)
	}
	at := strings.Index(text, line)
	begin := strings.LastIndex(text[:at], "\n") + 1
	last := "\n"
	if strings.HasPrefix(line, "func ") {
		last = "\n}\n"
	}
	end := begin + strings.Index(text[begin:], last) + len(last)
	return text[:begin], text[begin:end], text[end:]
}

// perform runs the commands of a block.
func (r *reader) perform(b block) {
	r.t.Helper()
	if strings.Contains(b.text, "go mod tidy") {
		r.pinVersions()
	}
	cmd := r.command("bash", "-e", "-o", "pipefail", "-c", b.text)
	if b.do == "interrupt" {
		timer := time.AfterFunc(time.Second, r.service.terminate)
		defer timer.Stop()
	}
	var err error
	r.output, err = cmd.CombinedOutput()
	if (err != nil) != (b.do == "fail") && !r.mayRepeat() {
		r.t.Fatalf("README.md:%d: %v\n%s", b.line, err, r.output)
	}
	if b.do == "interrupt" {
		if err := r.service.stop(); err != nil {
			r.t.Errorf("README.md:%d: the service: %v\n%s", b.line, err, r.service.text())
		}
	}
}

func (r *reader) command(name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	r.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = r.folder, r.env
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// pinVersions adds the required modules of examples/go.mod to go.mod, so that go mod tidy finds no newer versions.
func (r *reader) pinVersions() {
	r.t.Helper()
	text, err := exec.CommandContext(r.t.Context(), "go", "mod", "edit", "-json", filepath.Join("..", "go.mod")).Output()
	if err != nil {
		r.t.Fatal(err)
	}
	var module struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(text, &module); err != nil {
		r.t.Fatal(err)
	}
	args := []string{"mod", "edit"}
	for _, m := range module.Require {
		args = append(args, "-require="+m.Path+"@"+m.Version)
	}
	if out, err := r.command("go", args...).CombinedOutput(); err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
	sums, err := os.ReadFile(filepath.Join("..", "go.sum"))
	if err == nil {
		err = os.WriteFile(filepath.Join(r.folder, "go.sum"), sums, 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// mayRepeat reports whether the last commands may run again. Commands with curl depend on time: on a slow machine a
// request may come too late.
func (r *reader) mayRepeat() bool { return strings.Contains(r.last.text, "curl") }

// see compares the output of the last commands with a block. It repeats commands at most twice.
func (r *reader) see(b block) {
	r.t.Helper()
	for try := 1; ; try++ {
		line := missing(string(r.output), b.text, b.argument == "any order")
		switch {
		case line == "":
			return
		case try == 3 || !r.mayRepeat():
			r.t.Errorf("README.md:%d: the output lacks %q, in this place:\n%s\nthe service:\n%s", b.line, line, r.output, r.service.text())
			return
		}
		r.t.Logf("README.md:%d: again, because the output lacks %q:\n%s", b.line, line, r.output)
		if r.last.do == "interrupt" {
			r.start(r.last)
		}
		r.perform(r.last)
	}
}

// start starts the service and waits until it listens.
func (r *reader) start(b block) {
	r.t.Helper()
	_ = r.service.stop() // before step 10 of the page, it does not exit with 0
	program := filepath.Join(r.t.TempDir(), "shop")
	if out, err := r.command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		r.t.Fatalf("README.md:%d: %v\n%s", b.line, err, out)
	}
	cmd := exec.Command(program) // see stop
	cmd.Dir, cmd.Env = r.folder, r.env
	s, err := begin(cmd)
	if err != nil {
		r.t.Fatal(err)
	}
	r.service, r.logged = s, 0
	for !r.listens() {
		select {
		case <-s.ended:
			r.t.Fatalf("README.md:%d: the service ended: %v\n%s", b.line, s.err, s.text())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (r *reader) listens() bool {
	conn, err := new(net.Dialer).DialContext(r.t.Context(), "tcp", r.web)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// await waits until the service has written the lines of a block.
func (r *reader) await(b block) {
	r.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		line := missing(r.service.text()[r.logged:], b.text, false)
		switch {
		case line == "":
			return
		case time.Now().After(deadline):
			r.t.Fatalf("README.md:%d: the service has not written %q:\n%s", b.line, line, r.service.text())
		}
		time.Sleep(20 * time.Millisecond) // the output of another process
	}
}

// service is a process with its output.
type service struct {
	process *os.Process
	ended   chan struct{}
	err     error // of the process, once ended is closed

	mu     sync.Mutex
	output bytes.Buffer
}

func begin(cmd *exec.Cmd) (*service, error) {
	s := &service{ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = s, s
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("the service: %w", err)
	}
	s.process = cmd.Process
	go func() {
		s.err = cmd.Wait()
		close(s.ended)
	}()
	return s, nil
}

// Write implements io.Writer.
func (s *service) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.output.Write(p)
}

func (s *service) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.output.String()
}

func (s *service) size() int { return len(s.text()) }

// terminate sends SIGTERM. Shells let the programs in their background ignore the signal of Ctrl-C.
func (s *service) terminate() { _ = s.process.Signal(syscall.SIGTERM) }

// stop terminates the service if it runs, and returns the error of the process.
func (s *service) stop() error {
	if s.process == nil {
		return nil
	}
	s.terminate()
	killer := time.AfterFunc(time.Minute, func() { _ = s.process.Kill() })
	defer killer.Stop()
	<-s.ended
	return s.err
}
