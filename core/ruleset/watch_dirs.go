package ruleset

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLinks is how many symbolic links a path may lead through, as on Linux.
const maxLinks = 40

// watchedDirs lists the directories in which a change can make the path lead to
// another content: that of the file, and that of every symbolic link on the way. They
// are given without symbolic links. Where something on the way is absent it is the
// directory in which it would appear.
//
// A file itself is not watched: such a watch follows the file out of its directory
// when it is replaced by renaming, and reports nothing any more.
func watchedDirs(path string) []string {
	w := walk{dir: root(path), rest: parts(path)}
	for links := 0; len(w.rest) > 0 && links <= maxLinks; {
		entry, ok := w.next()
		if !ok {
			continue
		}
		info, err := os.Lstat(entry)
		switch {
		case err == nil && info.IsDir():
			w.dir = entry
		case err == nil && info.Mode()&fs.ModeSymlink != 0:
			links++
			w.watch()
			w.follow(entry)
		default:
			w.watch()
			return w.found
		}
	}
	return w.found
}

// walk is a way along a path.
type walk struct {
	dir   string   // where it has come to; without symbolic links
	rest  []string // what is left of the path
	found []string
}

// next is the next entry on the way; there is none where the path stays in the
// directory or goes up.
func (w *walk) next() (entry string, ok bool) {
	name := w.rest[0]
	w.rest = w.rest[1:]
	switch name {
	case "", ".":
		return "", false
	case "..":
		w.dir = filepath.Dir(w.dir)
		return "", false
	default:
		return filepath.Join(w.dir, name), true
	}
}

func (w *walk) watch() {
	if !slices.Contains(w.found, w.dir) {
		w.found = append(w.found, w.dir)
	}
}

// follow goes on at the target of a symbolic link.
func (w *walk) follow(link string) {
	target, err := os.Readlink(link)
	if err != nil {
		w.rest = nil // it has just been replaced: that shows in its directory
		return
	}
	if filepath.IsAbs(target) {
		w.dir = root(target)
	}
	w.rest = append(parts(target), w.rest...)
}

func root(path string) string { return filepath.VolumeName(path) + string(filepath.Separator) }

func parts(path string) []string {
	return strings.FieldsFunc(path[len(filepath.VolumeName(path)):], func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) })
}
