package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/rulefile"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// file judges what a rule file says about itself as a whole.
func (i *inspector) file() {
	if i.in.File == nil {
		return
	}
	i.switches()
	i.profiles()
	if f, found := Service(i.in.File, i.in.Service); found {
		i.findings.add(f.Severity, f.Problem)
	}
}

// switches warns of settings that are for a while only.
func (i *inspector) switches() {
	s, at := i.in.Set.Settings(), i.in.Set.Dump().SettingSources
	for _, setting := range []struct {
		name, meaning string
		on            bool
	}{
		{"disabled", "every handler runs without its lock: remove the line when that is over", s.Disabled},
		{"dry_run", "every handler runs without its lock, which is taken beside it only to count: remove the line to lock", s.DryRun},
		{"allow_rekey", "a reload may change keys, and programs with the old and with the new ones do not exclude each other: remove the line when all have the new ones", s.AllowRekey},
	} {
		if setting.on {
			i.findings.add(report.Warning, &ruleset.Problem{
				Field: setting.name, Source: at[setting.name],
				Message: setting.meaning,
			})
		}
	}
}

// profiles warns of those that no rule of the file has, and none of the options that
// are known.
func (i *inspector) profiles() {
	used := slices.Clone(i.in.File.Uses)
	where := "no rule of the file or of the .proto files has it"
	if i.in.Image == nil {
		where = "no rule of the file has it"
	} else {
		for _, m := range i.in.Image.Methods {
			for _, d := range m.Rules {
				used = append(used, d.Rule.Profile)
			}
		}
	}
	for name, at := range i.in.File.Profiles {
		if !slices.Contains(used, name) {
			i.findings.add(report.Warning, &ruleset.Problem{
				Field: "profiles." + name, Source: at,
				Message: fmt.Sprintf("%s: write profile: %s into a rule, or remove it, unless it is for rules elsewhere", where, name),
			})
		}
	}
}

// Service judges the name of a program: a warning if it is probably misspelt, a note
// if no rule is for that program alone. found is false where there is nothing to say.
func Service(file *rulefile.File, service string) (f report.Finding, found bool) {
	if file == nil || service == "" || len(file.Services) == 0 || slices.Contains(file.Services, service) {
		return f, false
	}
	p := &ruleset.Problem{Field: "services", Source: file.ServicesAt}
	if near := failpolicy.Nearest(service, file.Services); near != "" {
		p.Message = fmt.Sprintf("no rule names the service %q: did you mean --service %s?", service, near)
		return report.Finding{Severity: report.Warning, Problem: p}, true
	}
	p.Message = fmt.Sprintf("no rule names the service %q: the file names %s", service, strings.Join(file.Services, ", "))
	return report.Finding{Severity: report.Note, Problem: p}, true
}
