package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
)

// watches reads initial events with their bookmark, resumes at a version, filters by a field, and waits for a state.
func watches(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	for _, name := range []string{"a", "b"} {
		if _, err := maps.Create(ctx, configMap(name, name, nil), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	initial := true
	stream, err := maps.Watch(ctx, metav1.ListOptions{
		AllowWatchBookmarks: true, SendInitialEvents: &initial,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		return err
	}
	version := ""
	for event := range stream.ResultChan() {
		one, ok := event.Object.(*corev1.ConfigMap)
		if !ok {
			return fmt.Errorf("%T", event.Object)
		}
		w.say("%s %s %v", event.Type, one.Name, one.Annotations)
		if event.Type == watch.Bookmark {
			version = one.ResourceVersion
			break
		}
	}
	stream.Stop()
	if _, err := maps.Update(ctx, configMap("a", "changed", nil), metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := maps.Delete(ctx, "b", metav1.DeleteOptions{}); err != nil {
		return err
	}
	resumed, err := toolswatch.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = "metadata.name!=nothing"
			return maps.Watch(ctx, options)
		},
	})
	if err != nil {
		return err
	}
	for range 2 {
		event := <-resumed.ResultChan()
		w.say("resumed: %s %s", event.Type, event.Object.(*corev1.ConfigMap).Name)
	}
	resumed.Stop()
	seconds := int64(1)
	short, err := maps.Watch(ctx, metav1.ListOptions{TimeoutSeconds: &seconds, FieldSelector: "metadata.name=a"})
	if err != nil {
		return err
	}
	for event := range short.ResultChan() {
		w.say("until its end: %s %s", event.Type, event.Object.(*corev1.ConfigMap).Name)
	}
	_, err = maps.Watch(ctx, metav1.ListOptions{ResourceVersion: "no"})
	w.say("bad version: %v", err)
	_, err = maps.Watch(ctx, metav1.ListOptions{SendInitialEvents: &initial})
	w.say("without a match: %v", err)
	_, err = maps.List(ctx, metav1.ListOptions{Continue: "nonsense"})
	w.say("bad token: %v", err)
	return nil
}
