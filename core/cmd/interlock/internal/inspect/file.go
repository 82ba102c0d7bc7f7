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

// checkFile checks the settings, profiles and services of a rule file.
func checkFile(in *Inputs, found *findings) {
	if in.File == nil {
		return
	}
	checkSettings(in.Set, found)
	checkProfiles(in, found)
	if f, ok := Service(in.File, in.Service); ok {
		found.add(f.Severity, f.Problem)
	}
}

// checkSettings adds a warning for each setting that should be on only for a short time.
func checkSettings(set *ruleset.Set, found *findings) {
	s, at := set.Settings(), set.Dump().SettingSources
	for _, setting := range []struct {
		name, meaning string
		on            bool
	}{
		{"disabled", "every handler runs without its lock: remove the line to lock again", s.Disabled},
		{"dry_run", "every handler runs without its lock, and a shadow of the lock is taken only to count: remove the line to lock", s.DryRun},
		{"allow_rekey", "a reload may change keys, and programs with the old and with the new keys do not exclude each other: remove the line when all have the new keys", s.AllowRekey},
	} {
		if setting.on {
			found.add(report.Warning, &ruleset.Problem{
				Field: setting.name, Source: at[setting.name],
				Message: setting.meaning,
			})
		}
	}
}

// checkProfiles adds a warning for each profile that no rule of the file and no known .proto option uses.
func checkProfiles(in *Inputs, found *findings) {
	used := slices.Clone(in.File.Uses)
	where := "no rule of the file or of the .proto files has it"
	if in.Image == nil {
		where = "no rule of the file has it"
	} else {
		for _, m := range in.Image.Methods {
			for _, d := range m.Rules {
				used = append(used, d.Rule.Profile)
			}
		}
	}
	for name, at := range in.File.Profiles {
		if !slices.Contains(used, name) {
			found.add(report.Warning, &ruleset.Problem{
				Field: "profiles." + name, Source: at,
				Message: fmt.Sprintf("%s: write profile: %s into a rule, or remove it, unless it is for rules elsewhere", where, name),
			})
		}
	}
}

// Service checks the name of a program against the services lists in file. If no rule names service, Service returns a
// note, or a warning if service is similar to a name in the file. Otherwise it returns false.
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
