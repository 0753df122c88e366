// Reads triggers of a ScaledObject from stdin as JSON, and prints the answers of KEDA's scalers.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	v2 "k8s.io/api/autoscaling/v2"

	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
)

type trigger struct {
	Type       string
	MetricType v2.MetricTargetType
	Metadata   map[string]string
	AuthParams map[string]string
}

type answer struct {
	// Type and target of the metric in the HorizontalPodAutoscaler.
	MetricType string `json:"metricType,omitempty"`
	Target     string `json:"target,omitempty"`
	// Values of the metric, as the HorizontalPodAutoscaler receives them.
	Values   []string `json:"values"`
	IsActive bool     `json:"isActive"`
	Error    string   `json:"error,omitempty"`
}

func main() {
	var triggers []trigger
	if err := json.NewDecoder(os.Stdin).Decode(&triggers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	answers := []answer{}
	for _, each := range triggers {
		answers = append(answers, ask(each))
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		os.Exit(1)
	}
}

func ask(from trigger) answer {
	found := answer{Values: []string{}}
	ctx := context.Background()
	scaler, err := open(from)
	if err != nil {
		found.Error = err.Error()
		return found
	}
	defer scaler.Close(ctx)
	external := scaler.GetMetricSpecForScaling(ctx)[0].External
	found.MetricType = string(external.Target.Type)
	if external.Target.Value != nil {
		found.Target = external.Target.Value.String()
	}
	if external.Target.AverageValue != nil {
		found.Target = external.Target.AverageValue.String()
	}
	values, isActive, err := scaler.GetMetricsAndActivity(ctx, external.Metric.Name)
	if err != nil {
		found.Error = err.Error()
		return found
	}
	for _, each := range values {
		found.Values = append(found.Values, each.Value.String())
	}
	found.IsActive = isActive
	return found
}

func open(from trigger) (scalers.Scaler, error) {
	config := &scalersconfig.ScalerConfig{
		ScalableObjectName:      "konverge-worker",
		ScalableObjectNamespace: "konverge",
		ScalableObjectType:      "ScaledObject",
		GlobalHTTPTimeout:       10 * time.Second,
		TriggerType:             from.Type,
		TriggerMetadata:         from.Metadata,
		AuthParams:              from.AuthParams,
		MetricType:              from.MetricType,
	}
	switch from.Type {
	case "prometheus":
		return scalers.NewPrometheusScaler(config)
	case "metrics-api":
		return scalers.NewMetricsAPIScaler(config, nil)
	}
	return nil, fmt.Errorf("unknown trigger type %q", from.Type)
}
