package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
)

// ruleFile is a copy of locks.yaml that the service watches.
type ruleFile struct {
	dir, path string
	original  string
	current   string
	reloads   <-chan ruleset.Reload
}

func newRuleFile(text string, reloads <-chan ruleset.Reload) (*ruleFile, error) {
	dir, err := os.MkdirTemp("", "declared-")
	if err != nil {
		return nil, err
	}
	f := &ruleFile{dir: dir, path: filepath.Join(dir, "locks.yaml"), original: text, current: text, reloads: reloads}
	return f, os.WriteFile(f.path, []byte(text), 0o600)
}

func (f *ruleFile) remove() { _ = os.RemoveAll(f.dir) }

// with returns the original with a text replaced, which must occur once.
func (f *ruleFile) with(old, replacement string) (string, error) {
	if n := strings.Count(f.original, old); n != 1 {
		return "", fmt.Errorf("locks.yaml contains %q %d times, want once", old, n)
	}
	return strings.Replace(f.original, old, replacement, 1), nil
}

// publish replaces the content of the file.
type publish func(f *ruleFile, text string) error

// byRename replaces the file like an editor.
func byRename(f *ruleFile, text string) error {
	next := f.path + "~"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, f.path)
}

// byLink replaces the file like Kubernetes updates a ConfigMap: locks.yaml is a link to
// ..data/locks.yaml, and ..data is a link to a folder, which is replaced by another one.
func byLink(f *ruleFile, text string) error {
	version, err := os.MkdirTemp(f.dir, "..version-")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(version, "locks.yaml"), []byte(text), 0o600); err != nil {
		return err
	}
	if err := replaceLink(filepath.Base(version), filepath.Join(f.dir, "..data")); err != nil {
		return err
	}
	return replaceLink(filepath.Join("..data", "locks.yaml"), f.path) // the first time only
}

// replaceLink makes name a link to target, atomically.
func replaceLink(target, name string) error {
	if now, err := os.Readlink(name); err == nil && now == target {
		return nil
	}
	if err := os.Symlink(target, name+"~"); err != nil {
		return err
	}
	return os.Rename(name+"~", name)
}

// put publishes a text and waits until the service has read it. refused is the reason
// why the service did not apply it, or nil if it is in force.
func (f *ruleFile) put(ctx context.Context, text string, by publish) (refused, err error) {
	for len(f.reloads) > 0 {
		<-f.reloads // reloads of earlier texts
	}
	if err := by(f, text); err != nil {
		return nil, err
	}
	f.current = text
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:])[:12] // like in Reload
	for {
		select {
		case r := <-f.reloads:
			if r.Hash == hash {
				return r.Err, nil
			}
		case <-ctx.Done():
			return nil, errors.New("the service did not read the file")
		}
	}
}
