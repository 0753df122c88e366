package main

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

func configMap(name string, label string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": label}},
		Data:       data,
	}
}

// seen counts what an informer reports.
type seen struct {
	mutex sync.Mutex
	count map[string]int
}

func (s *seen) add(what string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.count[what]++
}

func (s *seen) has(what string) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		return s.count[what] > 0, nil
	}
}

func (s *seen) names() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	lines := []string{}
	for line, count := range s.count {
		if !strings.HasPrefix(line, "resync") {
			line = fmt.Sprintf("%s x%d", line, count)
		}
		lines = append(lines, line)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

func poll(ctx context.Context, condition wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 60*time.Second, true, condition)
}

// informers follows ConfigMaps by a selector, with a resync and an index, while they enter and leave the selection.
func informers(ctx context.Context, w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	if _, err := maps.Create(ctx, configMap("before", "in", nil), metav1.CreateOptions{}); err != nil {
		return err
	}
	factory := kubeinformers.NewSharedInformerFactoryWithOptions(w.typed, time.Second,
		kubeinformers.WithNamespace(w.namespace),
		kubeinformers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "app in (in)" }))
	informer := factory.Core().V1().ConfigMaps()
	report := &seen{count: map[string]int{}}
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			report.add(fmt.Sprintf("added %s initially=%v", object.(*corev1.ConfigMap).Name, initial))
		},
		UpdateFunc: func(before, after any) {
			old, new := before.(*corev1.ConfigMap), after.(*corev1.ConfigMap)
			if old.ResourceVersion == new.ResourceVersion {
				report.add("resync of " + new.Name)
				return
			}
			report.add(fmt.Sprintf("updated %s from %v to %v", new.Name, old.Data, new.Data))
		},
		DeleteFunc: func(object any) { report.add("deleted " + object.(*corev1.ConfigMap).Name) },
	})
	if err != nil {
		return err
	}
	inner, stop := context.WithCancel(ctx)
	defer stop()
	factory.Start(inner.Done())
	if !cache.WaitForCacheSync(inner.Done(), informer.Informer().HasSynced) {
		return fmt.Errorf("not synced")
	}
	for _, one := range []*corev1.ConfigMap{configMap("in", "in", nil), configMap("out", "out", nil), configMap("moving", "in", nil)} {
		if _, err := maps.Create(ctx, one, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, one := range []*corev1.ConfigMap{
		configMap("in", "in", map[string]string{"a": "1"}), configMap("moving", "out", nil), configMap("out", "in", nil),
	} {
		if _, err := maps.Update(ctx, one, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if err := maps.Delete(ctx, "before", metav1.DeleteOptions{}); err != nil {
		return err
	}
	for _, what := range []string{"deleted before", "deleted moving", "added out initially=false", "resync of in"} {
		if err := poll(ctx, report.has(what)); err != nil {
			return fmt.Errorf("never seen: %s\n%s", what, report.names())
		}
	}
	w.say("%s", report.names())
	list, err := informer.Lister().ConfigMaps(w.namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	names := []string{}
	for _, one := range list {
		names = append(names, one.Name)
	}
	sort.Strings(names)
	w.say("cached: %v", names)
	return nil
}
