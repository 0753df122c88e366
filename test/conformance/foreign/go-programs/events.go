package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	toolsevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

// events records with both recorders: a repeated event becomes a series in events.k8s.io and a count in v1.
func events(ctx context.Context, w *world) error {
	one, err := w.typed.CoreV1().ConfigMaps(w.namespace).Create(ctx, configMap("one", "a", nil), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	broadcaster := toolsevents.NewBroadcaster(&toolsevents.EventSinkImpl{Interface: w.typed.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	recorder := broadcaster.NewRecorder(scheme.Scheme, "go-programs")
	named := w.typed.EventsV1().Events(w.namespace)
	count := func(reason string, wanted func(series int32) bool) error {
		return poll(ctx, func(ctx context.Context) (bool, error) {
			list, err := named.List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
			if err != nil || len(list.Items) == 0 {
				return false, err
			}
			series := int32(0)
			if list.Items[0].Series != nil {
				series = list.Items[0].Series.Count
			}
			return wanted(series), nil
		})
	}
	recorder.Eventf(one, nil, corev1.EventTypeNormal, "Repeated", "Testing", "for the %s time", "nth")
	if err := count("Repeated", func(series int32) bool { return series == 0 }); err != nil {
		return err
	}
	recorder.Eventf(one, nil, corev1.EventTypeNormal, "Repeated", "Testing", "for the %s time", "nth")
	if err := count("Repeated", func(series int32) bool { return series >= 2 }); err != nil {
		return err
	}
	broadcaster.Shutdown()
	list, err := named.List(ctx, metav1.ListOptions{FieldSelector: "reason=Repeated"})
	if err != nil {
		return err
	}
	for _, event := range list.Items {
		w.say("%s %s %s %s %s, series %d, deprecated count %d", event.Type, event.Reason, event.Action, event.Note,
			event.ReportingController, event.Series.Count, event.DeprecatedCount)
	}

	old := record.NewBroadcaster(record.WithContext(ctx))
	old.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: w.typed.CoreV1().Events("")})
	older := old.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "go-programs"})
	core := w.typed.CoreV1().Events(w.namespace)
	for range 3 {
		older.Event(one, corev1.EventTypeWarning, "Counted", "again")
	}
	err = poll(ctx, func(ctx context.Context) (bool, error) {
		found, err := core.List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=one,reason=Counted"})
		return err == nil && len(found.Items) == 1 && found.Items[0].Count == 3, err
	})
	old.Shutdown()
	if err != nil {
		return err
	}
	found, err := core.List(ctx, metav1.ListOptions{FieldSelector: "reason=Counted"})
	if err != nil {
		return err
	}
	for _, event := range found.Items {
		w.say("%s %s %s x%d by %s on %s", event.Type, event.Reason, event.Message, event.Count, event.Source.Component,
			event.InvolvedObject.Kind)
	}
	return nil
}
