package readmetest_test

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// paper returns the text of a file in .github.
func paper(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".github", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	versionHeading = regexp.MustCompile(`^## (\d+)\.(\d+)\.(\d+) - \d{4}-\d\d-\d\d\n\nCommit ` + "`[0-9a-f]{8,40}`")
	groupHeading   = regexp.MustCompile(`(?m)^### (\w+)`)
	groups         = []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
)

// The changelog begins with Unreleased. Then come the versions, the newest first, each with its date and commit.
func TestChangelog_Sections(t *testing.T) {
	t.Parallel()
	sections := regexp.MustCompile(`(?m)^## `).Split(paper(t, "CHANGELOG.md"), -1)[1:]
	if !strings.HasPrefix(sections[0], "Unreleased\n") {
		t.Errorf("the first section is %.20q, want Unreleased", sections[0])
	}
	var last []int
	for _, section := range sections[1:] {
		m := versionHeading.FindStringSubmatch("## " + section)
		if m == nil {
			t.Errorf("%.60q: want a version, a date and a commit", section)
			continue
		}
		var version []int
		for _, number := range m[1:] {
			n, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			version = append(version, n)
		}
		if last != nil && slices.CompareFunc(version, last, cmp.Compare[int]) >= 0 {
			t.Errorf("version %v is below version %v", version, last)
		}
		last = version
	}
	for _, m := range groupHeading.FindAllStringSubmatch(strings.Join(sections, "\n"), -1) {
		if !slices.Contains(groups, m[1]) {
			t.Errorf("group %q: write one of %q", m[1], groups)
		}
	}
}

// Each action is pinned by a commit, and a comment names its version. Each file and folder in a command exists.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	text := paper(t, "workflows/ci.yml")
	for _, m := range mustFind(t, `uses: (.*)`, text) {
		if !regexp.MustCompile(`^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`).MatchString(m[1]) {
			t.Errorf("%s: write the commit, and its version in a comment", m[1])
		}
	}
	var workflow struct {
		Permissions map[string]string `yaml:"permissions"`
		Jobs        map[string]struct {
			Timeout int `yaml:"timeout-minutes"`
			Steps   []struct {
				Run string `yaml:"run"`
			} `yaml:"steps"`
		} `yaml:"jobs"`
	}
	if err := yaml.Load([]byte(text), &workflow); err != nil {
		t.Fatal(err)
	}
	if len(workflow.Permissions) != 1 || workflow.Permissions["contents"] != "read" {
		t.Errorf("permissions %v, want only to read", workflow.Permissions)
	}
	commands := ""
	for name, job := range workflow.Jobs {
		if job.Timeout == 0 {
			t.Errorf("job %s has no timeout", name)
		}
		for _, step := range job.Steps {
			commands += step.Run + "\n"
		}
	}
	for _, m := range mustFind(t, `(?m)(?: \./|^\.)[\w/]+`, commands) {
		wantTarget(t, "ci.yml", filepath.Join(root, filepath.FromSlash(strings.TrimSpace(m[0]))), "")
	}
}

// mustFind returns the matches of an expression. The test fails if there are none.
func mustFind(t *testing.T, expression, text string) [][]string {
	t.Helper()
	found := regexp.MustCompile(expression).FindAllStringSubmatch(text, -1)
	if len(found) == 0 {
		t.Fatalf("nothing matches %s", expression)
	}
	return found
}

// Dependabot updates each module and package, except for .ci/boards.
func TestDependabot_Folders(t *testing.T) {
	t.Parallel()
	var config struct {
		Updates []struct {
			Ecosystem   string   `yaml:"package-ecosystem"`
			Directory   string   `yaml:"directory"`
			Directories []string `yaml:"directories"`
		} `yaml:"updates"`
	}
	if err := yaml.Load([]byte(paper(t, "dependabot.yml")), &config); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range config.Updates {
		if u.Ecosystem == "gomod" {
			got = append(got, u.Directories...)
		}
	}
	var want []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{"boards", "tmp", "node_modules", ".git", "testdata"}, entry.Name()) {
			return filepath.SkipDir
		}
		if entry.Name() == "go.mod" {
			rel, err := filepath.Rel(root, filepath.Dir(path))
			want = append(want, strings.TrimSuffix("/"+filepath.ToSlash(rel), "."))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("dependabot.yml has the modules\n%q, want\n%q", got, want)
	}
}

// Each pattern of CODEOWNERS is a folder that exists.
func TestCodeowners_Folders(t *testing.T) {
	t.Parallel()
	for _, m := range mustFind(t, `(?m)^/(\S+)/ +@`, paper(t, "CODEOWNERS")) {
		wantTarget(t, "CODEOWNERS", filepath.Join(root, filepath.FromSlash(m[1])), "")
	}
}

// The forms for issues have the fields that GitHub requires, and each field has its own id.
func TestIssueForms(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, ".github", "ISSUE_TEMPLATE", "*.yml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if filepath.Base(file) == "config.yml" {
			continue
		}
		var form struct {
			Name        string `yaml:"name"`
			Description string `yaml:"description"`
			Body        []struct {
				Type       string         `yaml:"type"`
				ID         string         `yaml:"id"`
				Attributes map[string]any `yaml:"attributes"`
			} `yaml:"body"`
		}
		if err := yaml.Load([]byte(paper(t, "ISSUE_TEMPLATE/"+filepath.Base(file))), &form); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if form.Name == "" || form.Description == "" || len(form.Body) == 0 {
			t.Errorf("%s: name, description and body are required", file)
		}
		seen := map[string]bool{}
		for _, field := range form.Body {
			if field.Type == "markdown" {
				continue
			}
			if field.ID == "" || seen[field.ID] || field.Attributes["label"] == nil {
				t.Errorf("%s: field %q needs an id that no other field has, and a label", file, field.ID)
			}
			seen[field.ID] = true
		}
	}
}
