package interop

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// RequireEnv is the environment variable that turns missing Java or Maven from a skip
// into a failure when it is "1".
const RequireEnv = "INTERLOCK_REQUIRE_JAVA"

//go:embed java
var program embed.FS

// Build compiles the Java program for a version of Redisson and returns the class path. Without Java or Maven it skips
// the test, or fails it with [RequireEnv]. The result is kept in the user's cache folder until the program
// changes.
func Build(tb testing.TB, version string) (classPath string) {
	tb.Helper()
	requireTools(tb, "java", "mvn")
	dir, err := build(tb.Context(), version)
	if err != nil {
		tb.Fatalf("interop: build for Redisson %s: %v", version, err)
	}
	return filepath.Join(dir, "classes") + string(os.PathListSeparator) + filepath.Join(dir, "lib", "*")
}

func requireTools(tb testing.TB, tools ...string) {
	tb.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		if os.Getenv(RequireEnv) == "1" {
			tb.Fatalf("interop: %s=1 but %s is not on PATH: install a JDK 17 or later and Maven, or unset the variable", RequireEnv, tool)
		}
		tb.Skipf("interop: %s is not on PATH (install a JDK 17 or later and Maven to run this test; %s=1 makes this a failure)", tool, RequireEnv)
	}
}

// build returns the folder with the classes and the libraries. Maven works in a temporary folder, which is renamed at
// the end, so a folder with the final name is complete.
func build(ctx context.Context, version string) (string, error) {
	done, err := cacheFolder(version)
	if err != nil {
		return "", err
	}
	if exists(done) {
		return done, nil
	}
	if err := os.MkdirAll(filepath.Dir(done), 0o750); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(filepath.Dir(done), "building-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }()
	target := filepath.Join(work, "target")
	if err := compile(ctx, work, target, version); err != nil {
		return "", err
	}
	if err := os.Rename(target, done); err != nil && !exists(done) { // another process may have been first
		return "", err
	}
	return done, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// cacheFolder returns a folder with the version and a checksum of all sources in its name.
func cacheFolder(version string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir() // without a home folder
	}
	sum := sha256.New()
	err = fs.WalkDir(program, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		source, err := program.ReadFile(path)
		fmt.Fprintln(sum, path, len(source))
		sum.Write(source)
		return err
	})
	return filepath.Join(cache, "interlock-interop", version+"-"+hex.EncodeToString(sum.Sum(nil)[:8])), err
}

// compile tries to compile without the network first.
func compile(ctx context.Context, work, target, version string) error {
	if err := os.CopyFS(work, program); err != nil {
		return err
	}
	project := filepath.Join(work, "java")
	offline := maven(ctx, io.Discard, project, target, version, "-o")
	if offline == nil {
		return nil
	}
	if err := maven(ctx, os.Stderr, project, target, version); err != nil {
		return errors.Join(err, fmt.Errorf("offline: %w", offline))
	}
	return nil
}

func maven(ctx context.Context, out io.Writer, project, target, version string, flags ...string) error {
	goals := []string{
		"-q", "-B", "-Dredisson.version=" + version, "-Dbuild.dir=" + target,
		"compile", "dependency:copy-dependencies", "-DoutputDirectory=" + filepath.Join(target, "lib"),
	}
	cmd := exec.CommandContext(ctx, "mvn", append(flags, goals...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = project, out, out
	return cmd.Run()
}
