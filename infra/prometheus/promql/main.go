// Command promql evaluates expressions by Prometheus' own engine, over scrapes that it is given: for the tests of the alerts
// and of the query that scales workers. It reads {"series": [{"labels": {..}, "points": [[secondsAgo, value], ..]}],
// "expressions": [..]}, points oldest first, and answers for each expression {"samples": [{"labels", "value"}]} or {"error"}.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

type series struct {
	Labels map[string]string `json:"labels"`
	Points [][2]float64      `json:"points"`
}

type sample struct {
	Labels map[string]string `json:"labels"`
	Value  float64           `json:"value"`
}

type answer struct {
	Samples []sample `json:"samples"`
	Error   string   `json:"error,omitempty"`
}

func main() {
	var input struct {
		Series      []series `json:"series"`
		Expressions []string `json:"expressions"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: 10 * time.Second})
	data := &scrapes{input.Series, time.Now()}
	answers := []answer{}
	for _, expression := range input.Expressions {
		answers = append(answers, evaluate(engine, data, expression))
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func evaluate(engine *promql.Engine, data *scrapes, expression string) answer {
	query, err := engine.NewInstantQuery(context.Background(), data, nil, expression, data.now)
	if err != nil {
		return answer{Error: err.Error()}
	}
	defer query.Close()
	vector, err := query.Exec(context.Background()).Vector()
	if err != nil {
		return answer{Error: err.Error()}
	}
	found := []sample{}
	for _, one := range vector {
		found = append(found, sample{one.Metric.Map(), one.F})
	}
	return answer{Samples: found}
}

// What was scraped, as a storage.
type scrapes struct {
	series []series
	now    time.Time
}

func (s *scrapes) Querier(_, _ int64) (storage.Querier, error) { return s, nil }

func (s *scrapes) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &seriesSet{at: -1}
	for _, one := range s.series {
		set := labels.FromMap(one.Labels)
		matches := true
		for _, matcher := range matchers {
			matches = matches && matcher.Matches(set.Get(matcher.Name))
		}
		if !matches {
			continue
		}
		points := []chunks.Sample{}
		for _, entry := range one.Points {
			ago := time.Duration(entry[0] * float64(time.Second))
			points = append(points, point{s.now.Add(-ago).UnixMilli(), entry[1]})
		}
		found.series = append(found.series, storage.NewListSeries(set, points))
	}
	return found
}

func (*scrapes) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (*scrapes) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (*scrapes) Close() error { return nil }

type seriesSet struct {
	series []storage.Series
	at     int
}

func (s *seriesSet) Next() bool                      { s.at++; return s.at < len(s.series) }
func (s *seriesSet) At() storage.Series              { return s.series[s.at] }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }

type point struct {
	at    int64
	value float64
}

func (p point) T() int64                    { return p.at }
func (p point) F() float64                  { return p.value }
func (point) H() *histogram.Histogram       { return nil }
func (point) FH() *histogram.FloatHistogram { return nil }
func (point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample         { return p }
