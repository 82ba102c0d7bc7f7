package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckAPI(t *testing.T) {
	const before = "package shop\n\ntype Cart struct{ Items, Sum int }\n\nfunc Pay() {}\n\nfunc (Cart) Add() {}\n\ntype Order struct{ Cart }\n"
	noMethod := strings.Replace(before, "func (Cart) Add() {}", "", 1)
	noField := strings.Replace(before, ", Sum int", " int", 1)
	tests := map[string]struct{ after, changelog, missing string }{
		"compatible":          {before + "func Refund() {}\n", "## Unreleased\n", ""},
		"removed, not named":  {strings.Replace(before, "func Pay() {}", "", 1), "## Unreleased\n\nPayments\n\n## 0.1.0 - 2026-11-21\nPay\n", "Pay: removed"},
		"removed, in no code": {strings.Replace(before, "func Pay() {}", "", 1), "## Unreleased\n\nPay is removed.\n", "Pay: removed"},
		"removed and named":   {strings.Replace(before, "func Pay() {}", "", 1), "# Changelog\n\n## Unreleased\n- `shop.Pay(…)` is removed.\n", ""},
		"method, type named":  {noMethod, "## Unreleased\n- `Cart` and `Order` have no methods.\n", "Cart.Add, method set of *Order: removed"},
		"method named":        {noMethod, "## Unreleased\n- `Cart.Add` is removed.\n", ""},
		"field, type named":   {noField, "## Unreleased\n- `Cart` is smaller.\n", "Cart.Sum: removed"},
		"field named":         {noField, "## Unreleased\n- `Sum` of a cart is removed.\n", ""},
		"package removed":     {"", "## Unreleased\n", "package"},
		"package named":       {"", "## Unreleased\n- Package `shop` is removed.\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			old := module(t, map[string]string{"shop/shop.go": before, "other/other.go": "package other\n"})
			files := map[string]string{"other/other.go": "package other\n", "CHANGELOG.md": test.changelog}
			if test.after != "" {
				files["shop/shop.go"] = test.after
			}
			t.Chdir(module(t, files))
			err := checkAPI(old, "CHANGELOG.md")
			if test.missing == "" && err != nil || test.missing != "" && (err == nil || !strings.Contains(err.Error(), test.missing)) {
				t.Errorf("got %v, want an error that contains %q", err, test.missing)
			}
		})
	}
}

func TestCheckPlatforms(t *testing.T) {
	t.Chdir(module(t, map[string]string{
		"a.go":      "package a\n\nimport _ \"net/http\"\n",
		"a_test.go": "package a\n\nimport \"syscall\"\n\nvar _ = syscall.SIGSTOP\n",
	}))
	if err := checkPlatforms([]string{"darwin/arm64", "linux/arm64"}); err != nil {
		t.Error(err)
	}
	if err := checkPlatforms([]string{"windows/amd64"}); err == nil || !strings.Contains(err.Error(), "a_test.go:5") {
		t.Errorf("got %v, want the line of SIGSTOP", err)
	}
}

// module writes a module and returns its folder.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.com/m\n\ngo 1.26.0\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
