package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/spf13/pflag"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/proto"
)

func newHash() *command {
	return &command{
		name:     "hash",
		synopsis: "KEY",
		summary:  "show the hashed form of a key, as in traces and logs",
		text: `Prints the name of a Redis key in traces and logs: the first 16 hexadecimal digits of
its SHA-256. The client's prefix is part of the key.

Example:
  interlock hash 'shop:order:pay:42'`,
		args: oneKey("key"),
		run: func(_ context.Context, std streams, args []string) error {
			_, err := fmt.Fprintln(std.out, core.KeyHash(args[0]))
			return err
		},
	}
}

func newSchema() *command {
	return &command{
		name:    "schema",
		summary: "print the JSON Schema of rule files, for editors",
		text: `Prints the JSON Schema of rule files. Editors with the YAML language server find it by
the first line of a rule file:

  # yaml-language-server: $schema=locks.schema.json

Example:
  interlock schema > locks.schema.json`,
		args: noArguments,
		run: func(_ context.Context, std streams, _ []string) error {
			_, err := std.out.Write(ruleset.Schema())
			return err
		},
	}
}

func newProto() *command {
	var root string
	return &command{
		name:     "proto",
		synopsis: "-o FOLDER",
		summary:  "write the .proto file of the lock options, to compile yours with",
		text: `Writes interlock/v1/lock.proto of this version of Interlock below a folder, and prints its
path. The folder is an import root for buf and protoc: .proto files that import the options
need nothing else. protoc needs the plugins protoc-gen-go and protoc-gen-go-grpc. Your file
needs a go_package in your module, such as example.com/shop/orderspb.

Example:
  interlock proto -o third_party
  protoc -I . -I third_party --go_out=. --go_opt=module=example.com/shop \
    --go-grpc_out=. --go-grpc_opt=module=example.com/shop shop.proto`,
		args: noArguments,
		flags: func(set *pflag.FlagSet) {
			set.StringVarP(&root, "out", "o", "", "the `folder` that becomes the import root")
		},
		run: func(_ context.Context, std streams, _ []string) error {
			if root == "" {
				return usagef("no folder: write -o third_party")
			}
			return writeProto(std, root)
		},
	}
}

// writeProto writes the files of the import root. It replaces the files of another version.
func writeProto(std streams, root string) error {
	return fs.WalkDir(proto.Root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(root, filepath.FromSlash(path))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		content, err := proto.Root.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintln(std.out, to)
		return os.WriteFile(to, content, 0o644)
	})
}

func newVersion() *command {
	return &command{
		name:    "version",
		summary: "print the version of Interlock",
		text:    "Prints the versions of the Interlock module and of Go.",
		args:    noArguments,
		run: func(_ context.Context, std streams, _ []string) error {
			version := "(devel)"
			if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
				version = info.Main.Version
			}
			_, err := fmt.Fprintf(std.out, "interlock %s %s\n", version, runtime.Version())
			return err
		},
	}
}
