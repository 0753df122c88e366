package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func untyped(name string, data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name}, "data": data,
	}}
}

// clients uses the typed, the dynamic and the metadata client, pages of a list, and raw requests with other media types.
func clients(ctx context.Context, w *world) error {
	maps := w.dynamic.Resource(configMaps).Namespace(w.namespace)
	for i := range 5 {
		if _, err := maps.Create(ctx, untyped(fmt.Sprintf("c%d", i), map[string]any{"i": fmt.Sprint(i)}), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	_, err := maps.Create(ctx, untyped("c1", nil), metav1.CreateOptions{})
	w.say("create again: %v, already exists: %v", err, apierrors.IsAlreadyExists(err))
	list, err := maps.List(ctx, metav1.ListOptions{Limit: 2})
	if err != nil {
		return err
	}
	w.say("first page: %d items, %v more, continue: %v", len(list.Items), *list.GetRemainingItemCount(), list.GetContinue() != "")
	pages := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return maps.List(ctx, options)
	}))
	pages.PageSize = 2
	total := 0
	if err := pages.EachListItem(ctx, metav1.ListOptions{}, func(runtime.Object) error { total++; return nil }); err != nil {
		return err
	}
	w.say("paged: %d", total)
	_, err = maps.List(ctx, metav1.ListOptions{LabelSelector: "a in b"})
	w.say("bad selector: %v", err)
	_, err = maps.Get(ctx, "none", metav1.GetOptions{})
	w.say("missing: %v %v", err, apierrors.IsNotFound(err))
	stale, err := w.typed.CoreV1().ConfigMaps(w.namespace).Get(ctx, "c0", metav1.GetOptions{})
	if err != nil {
		return err
	}
	stale.ResourceVersion = "1"
	_, err = w.typed.CoreV1().ConfigMaps(w.namespace).Update(ctx, stale, metav1.UpdateOptions{})
	w.say("stale: %v %v", err, apierrors.IsConflict(err))
	tries := 0
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		tries++
		current, err := w.typed.CoreV1().ConfigMaps(w.namespace).Get(ctx, "c0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if tries == 1 {
			current.ResourceVersion = "1"
		}
		current.Data["tries"] = fmt.Sprint(tries)
		_, err = w.typed.CoreV1().ConfigMaps(w.namespace).Update(ctx, current, metav1.UpdateOptions{})
		return err
	})
	w.say("retried: %v after %d tries", err, tries)

	partial := w.metadata.Resource(configMaps).Namespace(w.namespace)
	metas, err := partial.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, one := range metas.Items {
		w.say("metadata: %s %v", one.Name, len(one.ManagedFields))
	}
	patched, err := partial.Patch(ctx, "c1", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	w.say("patched metadata: %s/%s %v", patched.APIVersion, patched.Kind, patched.Labels)
	if err := partial.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "a=b"}); err != nil {
		return err
	}
	uid := types.UID("other")
	err = partial.Delete(ctx, "c2", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	w.say("precondition: %v", apierrors.IsConflict(err))
	left, err := w.typed.CoreV1().ConfigMaps(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	w.say("left: %d", len(left.Items))
	return mediaTypes(ctx, w)
}

// mediaTypes sends what the server does not accept.
func mediaTypes(ctx context.Context, w *world) error {
	client := w.typed.CoreV1().RESTClient()
	path := "/api/v1/namespaces/" + w.namespace + "/configmaps"
	for _, accept := range []string{
		"text/html", "application/json;as=Table;v=v2;g=meta.k8s.io", "application/json;as=Nothing;v=v1;g=meta.k8s.io",
		"application/vnd.kubernetes.protobuf;as=Nothing, text/plain",
		"application/yaml",
	} {
		result := client.Get().AbsPath(path+"/c3").SetHeader("Accept", accept).Do(ctx)
		w.say("accept %s: %s", accept, answerOf(result))
	}
	for _, contentType := range []string{"text/plain", "application/merge-patch+json", "application/xml", "application/json; charset=utf-8"} {
		result := client.Post().AbsPath(path).SetHeader("Content-Type", contentType).SetHeader("Accept", "application/json").
			Body([]byte(`{"metadata":{"name":"c9"}}`)).Do(ctx)
		w.say("content %s: %s", contentType, answerOf(result))
		result = client.Verb("PATCH").AbsPath(path+"/c3").SetHeader("Content-Type", contentType).SetHeader("Accept", "application/json").
			Body([]byte(`{"metadata":{"labels":{"x":"y"}}}`)).Do(ctx)
		w.say("patch %s: %s", contentType, answerOf(result))
	}
	return nil
}

func answerOf(result rest.Result) string {
	code := 0
	result.StatusCode(&code)
	body, err := result.Raw()
	if err != nil {
		return fmt.Sprintf("%d %v", code, err)
	}
	text := string(body)
	if strings.Contains(text, "resourceVersion") {
		text = "an object"
	}
	return fmt.Sprintf("%d %s", code, text)
}

// patches sends each kind of patch, valid and not.
func patches(ctx context.Context, w *world) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: corev1.PodSpec{
			Containers:  []corev1.Container{{Name: "a", Image: "a"}},
			Tolerations: []corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpExists}},
		},
	}
	pods := w.typed.CoreV1().Pods(w.namespace)
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, one := range []struct {
		kind types.PatchType
		body string
	}{
		{types.StrategicMergePatchType, `{"spec":{"containers":[{"name":"a","image":"b"}]}}`},
		{types.StrategicMergePatchType, `{"metadata":{"finalizers":["a.b/c"]}}`},
		{types.StrategicMergePatchType, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a.b/c"]}}`},
		{types.StrategicMergePatchType, `{"metadata":{"labels":{"a":"b","c":"d"}}}`},
		{types.StrategicMergePatchType, `{"metadata":{"labels":{"$patch":"replace","e":"f"}}}`},
		{types.StrategicMergePatchType, `{"spec":{"containers":[{"name":"new","image":"b"}]}}`},
		{types.StrategicMergePatchType, `{"spec":{"containers":"none"}}`},
		{types.StrategicMergePatchType, `{"spec":{"activeDeadlineSeconds":"soon"}}`},
		{types.MergePatchType, `{"metadata":{"labels":{"e":null,"g":"h"}}}`},
		{types.MergePatchType, `[]`},
		{types.MergePatchType, `{"metadata":{"resourceVersion":"1"}}`},
		{types.JSONPatchType, `[{"op":"add","path":"/metadata/labels/i","value":"j"}]`},
		{types.JSONPatchType, `[{"op":"test","path":"/metadata/labels/i","value":"k"}]`},
		{types.JSONPatchType, `[{"op":"nothing","path":"/a"}]`},
		{types.JSONPatchType, `{"op":"add"}`},
		{types.ApplyPatchType, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"s":"t"}}}`},
	} {
		options := metav1.PatchOptions{}
		if one.kind == types.ApplyPatchType {
			options.FieldManager = "applier"
		}
		after, err := pods.Patch(ctx, "p", one.kind, []byte(one.body), options)
		if err != nil {
			w.say("%s %s: %v (%s)", one.kind, one.body, err, apierrors.ReasonForError(err))
			continue
		}
		w.say("%s %s: %v %v %s", one.kind, one.body, after.Labels, after.Finalizers, after.Spec.Containers[0].Image)
	}
	return nil
}
