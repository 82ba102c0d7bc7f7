// Package board defines the Grafana dashboard of Interlock. Command gen writes it to ../dashboard.json, which
// Grafana imports. Rows returns the questions, panels and queries. The rest of the package converts them to
// Grafana's format.
package board

import (
	"encoding/json"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// JSON returns the dashboard in the format that Grafana imports.
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
		Description("Shows which endpoints are slow because of a lock, which clients hold locks and wait for them, and which locks were lost.").
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

// width returns the number of panels that are side by side in a row.
func width(panels int) uint32 {
	if panels == 3 || panels > 4 {
		return 3
	}
	return uint32(min(panels, 2))
}

func source() common.DataSourceRef {
	return common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}
}

// variables returns the variables that select the data source, the services, the pods and the rules.
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

// Annotation is an event that is drawn over all time series.
type Annotation struct{ Name, Color, Expr string }

// Annotations returns the events that are drawn over the panels.
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
