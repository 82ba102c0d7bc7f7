// Package v2 has the names of Grafana's package of dashboards in schema v2 that the dashboard linter
// needs to compile. The dashboard of Interlock has the classic schema, so the linter never uses these
// types. The real package depends on Grafana's API server, which some module proxies lack.
package v2

// DashboardSpec is a dashboard.
type DashboardSpec struct {
	Title       string
	Editable    *bool
	Elements    map[string]DashboardElement
	Variables   []DashboardVariableKind
	Annotations []DashboardAnnotationQueryKind
}

// DashboardElement is a panel.
type DashboardElement struct{ PanelKind *of[DashboardPanelSpec] }

type of[T any] struct{ Spec T }

// DashboardPanelSpec describes a panel.
type DashboardPanelSpec struct {
	Id                 float64
	Title, Description string
	VizConfig          struct {
		Group string
		Spec  struct{ FieldConfig, Options map[string]any }
	}
	Data of[struct{ Queries []DashboardPanelQueryKind }]
}

// DashboardPanelQueryKind is a query of a panel.
type DashboardPanelQueryKind of[struct {
	RefId  string
	Hidden bool
	Query  DashboardDataQueryKind
}]

// DashboardDataQueryKind is a query for a data source.
type DashboardDataQueryKind struct {
	Group      string
	Datasource *struct{ Name *string }
	Spec       map[string]any
}

// DashboardAnnotationQueryKind is a query for annotations.
type DashboardAnnotationQueryKind of[struct {
	Name  string
	Query DashboardDataQueryKind
}]

// DashboardVariableKind is a variable.
type DashboardVariableKind struct {
	QueryVariableKind *of[variable[DashboardDataQueryKind]]

	DatasourceVariableKind, CustomVariableKind, IntervalVariableKind, ConstantVariableKind,
	TextVariableKind, AdhocVariableKind, GroupByVariableKind, SwitchVariableKind *of[variable[string]]
}

type variable[Q any] struct {
	Name, PluginId string
	Label          *string
	Multi          bool
	AllValue       *string
	Refresh        DashboardVariableRefresh
	Query          Q
}

// DashboardVariableRefresh says when a variable is reloaded.
type DashboardVariableRefresh string

// The times at which a variable is reloaded.
const (
	DashboardVariableRefreshOnTimeRangeChanged DashboardVariableRefresh = "onTimeRangeChanged"
	DashboardVariableRefreshOnDashboardLoad    DashboardVariableRefresh = "onDashboardLoad"
)
