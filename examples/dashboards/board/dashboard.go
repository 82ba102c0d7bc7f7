// Package board is the Grafana dashboard of Interlock, as code. Folder gen writes it to
// ../dashboard.json, which Grafana imports. Rows has what it shows, in the order in which it
// is asked; the rest of the package turns that into Grafana's form.
package board

import (
	"encoding/json"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// JSON is the dashboard as Grafana imports it.
func JSON() ([]byte, error) {
	built, err := build()
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(built, "", "  ")
	return append(text, '\n'), err
}

func build() (dashboard.Dashboard, error) {
	b := dashboard.NewDashboardBuilder("Distributed locks").
		Uid("interlock").
		Description("Which endpoint is slow because of a lock, who holds it, who waits, and what was lost.").
		Tags([]string{"interlock", "locks", "redis"}).
		Readonly().
		Refresh("30s").
		Time("now-1h", "now").
		Timezone(common.TimeZoneBrowser).
		Tooltip(dashboard.DashboardCursorSyncCrosshair)
	for _, v := range variables() {
		b.WithVariable(v)
	}
	for _, a := range annotations() {
		b.Annotation(a)
	}
	for _, row := range Rows() {
		b.WithRow(dashboard.NewRowBuilder(row.Question))
		for i := range row.Panels {
			panel, err := row.Panels[i].builder(24 / width(len(row.Panels)))
			if err != nil {
				return dashboard.Dashboard{}, err
			}
			b.WithPanel(panel)
		}
	}
	return b.Build()
}

// width is how many panels of a row stand side by side.
func width(panels int) uint32 {
	if panels == 3 || panels > 4 {
		return 3
	}
	return uint32(min(panels, 2))
}

func source() common.DataSourceRef {
	return common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}
}

// variables choose the data source, the services, the pods and the rules.
func variables() []cog.Builder[dashboard.VariableModel] {
	all := dashboard.VariableOption{
		Text:  dashboard.StringOrArrayOfString{String: new("All")},
		Value: dashboard.StringOrArrayOfString{String: new("$__all")},
	}
	choice := func(name, label, of string) cog.Builder[dashboard.VariableModel] {
		return dashboard.NewQueryVariableBuilder(name).
			Label(label).
			Datasource(source()).
			Query(dashboard.StringOrMap{String: new(of)}).
			Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
			Sort(dashboard.VariableSortAlphabeticalAsc).
			Multi(true).IncludeAll(true).AllValue(".+").Current(all)
	}
	return []cog.Builder[dashboard.VariableModel]{
		dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus"),
		choice("job", "Job", `label_values(distributed_lock_client_info, job)`),
		choice("instance", "Instance", `label_values(distributed_lock_client_info{job=~"$job"}, instance)`),
		choice("rule", "Rule", `label_values(distributed_lock_held{job=~"$job", instance=~"$instance"}, distributed_lock_rule)`),
	}
}

// Annotation is an event that is drawn over all panels of lines.
type Annotation struct{ Name, Color, Expr string }

// Annotations are the events that are drawn over the panels.
func Annotations() []Annotation {
	reloads := func(outcome string) string {
		return fmt.Sprintf(`sum by (job, instance) (increase(distributed_lock_reloads_total{job=~"$job", instance=~"$instance", distributed_lock_outcome=%q}[1m])) > 0`, outcome)
	}
	return []Annotation{
		{"New rules in force", "green", reloads("applied")},
		{"Rules refused", "red", reloads("refused")},
	}
}

func annotations() (built []cog.Builder[dashboard.AnnotationQuery]) {
	for _, a := range Annotations() {
		built = append(built, dashboard.NewAnnotationQueryBuilder().
			Name(a.Name).Datasource(source()).Enable(true).IconColor(a.Color).Expr(a.Expr))
	}
	return built
}
