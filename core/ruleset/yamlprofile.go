package ruleset

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
)

// defaultProfile is the name of the values that hold for every rule of a file.
const defaultProfile = "default"

// sharedFields are the fields that profiles and defaults may have, singleFields those that belong
// to a single rule.
var ( //nolint:gochecknoglobals // tables that are only read
	sharedFields = slices.DeleteFunc(slices.Clone(ruleFields), func(f *field[Rule]) bool { return f.single })
	singleFields = slices.DeleteFunc(slices.Clone(ruleFields), func(f *field[Rule]) bool { return !f.single })
)

// maxProfiles bounds the profiles of a file.
const maxProfiles = 1000

// readProfiles reads the values that rules share.
func (f *fileReader) readProfiles(v value, to *config) bool {
	if !f.Is(v, yaml.MappingNode, "names with values, such as default: {wait_time: 5s}") {
		return false
	}
	if n := len(v.Node.Content) / 2; n > maxProfiles {
		f.Reportf(v.Node, v.Field, "%d profiles: a file has %d at most", n, maxProfiles)
		return false
	}
	file, all := f.scope, true
	defer func() { f.scope = file }()
	seen := map[string]*yaml.Node{}
	for p := range strictyaml.Pairs(v.Node, v.Field+".") {
		f.scope = file
		name, ok := f.Name(v.Field, p.Key)
		switch {
		case !ok:
			all = false
		case isDefaultMeant(name):
			f.Reportf(p.Key, v.Field, "%s: write default, which is the one that applies to every rule", keyText(name))
			f.readProfile(defaultProfile, p, to)
		case len(name) > maxNameLength:
			f.Reportf(p.Key, v.Field, "a name of %d bytes: write %d at most", len(name), maxNameLength)
			all = false
		case isBlank(name):
			f.Reportf(p.Key, v.Field, "a profile without a name: write reports: or default:")
		case !isPrintable(name):
			f.Reportf(p.Key, v.Field, "%s: write a name of visible characters, such as reports", keyText(name))
			all = false
		case seen[name] != nil:
			f.reportTwice(p.Field, seen[name], p.Key)
		default:
			seen[name] = p.Key
			f.readProfile(name, p, to)
		}
	}
	return all
}

// isDefaultMeant reports a name that looks like the one of the values for every rule. No
// profile may have it: what it says would count nowhere.
func isDefaultMeant(name string) bool {
	folded := foldKey(name)
	return name != defaultProfile && (folded == defaultProfile || folded == defaultProfile+"s")
}

// readProfile reads one profile, or the defaults of the file.
func (f *fileReader) readProfile(name string, v value, to *config) {
	f.scope.Layer, f.scope.Profile = LayerProfile, name
	if name == defaultProfile {
		f.scope.Layer, f.scope.Profile = LayerDefault, ""
	}
	v.Field = ""
	d := Declared{Source: f.of(v.Key)}
	if f.Is(v, yaml.MappingNode, "its values, such as wait_time: 5s") {
		f.take(&d, readMapping(f, profileTable, "", v.Node, &d.Rule))
	} else {
		d.broken = append(d.broken, "profile") // it is there, but nobody knows what it says
	}
	if name == defaultProfile {
		to.defaults = append(to.defaults, d)
		return
	}
	to.profiles = append(to.profiles, d)
}
