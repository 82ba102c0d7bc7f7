package board

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// panelHeight is the height of every panel, in units of Grafana's grid.
const panelHeight = 8

// builder returns the builder of a panel in Grafana's library. span is its width in 24ths.
func (p *Panel) builder(span uint32) (cog.Builder[dashboard.Panel], error) {
	switch p.Form {
	case Lines:
		b := timeseries.NewPanelBuilder().
			Title(p.Title).Description(p.Answers).Datasource(source()).
			Unit(p.Unit).Span(span).Height(panelHeight).Min(0).
			LineWidth(1).FillOpacity(8).ShowPoints(common.VisibilityModeNever).
			Legend(common.NewVizLegendOptionsBuilder().
				DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true)).
			Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti))
		for i, q := range p.Queries {
			histogram := strings.Contains(q.Expr, "_bucket{") // only histograms have exemplars
			b.WithTarget(q.target(i).Range().Exemplar(histogram).LegendFormat(q.Legend))
		}
		return b, nil
	case Stat:
		b := stat.NewPanelBuilder().
			Title(p.Title).Description(p.Answers).Datasource(source()).
			Unit(p.Unit).Span(span).Height(panelHeight)
		for i, q := range p.Queries {
			b.WithTarget(q.target(i).Instant().LegendFormat(q.Legend))
		}
		return b, nil
	case Table:
		b := table.NewPanelBuilder().
			Title(p.Title).Description(p.Answers).Datasource(source()).
			Unit(p.Unit).Span(span).Height(panelHeight).
			WithTransformation(withoutTime())
		for i, q := range p.Queries {
			b.WithTarget(q.target(i).Instant().Format(prometheus.PromQueryFormatTable))
		}
		return b, nil
	default:
		return nil, fmt.Errorf("panel %q: unknown form %q", p.Title, p.Form)
	}
}

// withoutTime hides the column of the time, which is the same in every row.
func withoutTime() dashboard.DataTransformerConfig {
	return dashboard.DataTransformerConfig{
		Id:      "organize",
		Options: map[string]any{"excludeByName": map[string]bool{"Time": true}},
	}
}

func (q *Query) target(i int) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().
		Expr(fill(q.Expr)).
		RefId(string(rune('A' + i))).
		EditorMode(prometheus.QueryEditorModeCode)
}
