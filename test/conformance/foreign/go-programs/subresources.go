package main

import (
	"context"
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	autoscaling "k8s.io/client-go/applyconfigurations/autoscaling/v1"
)

// subresources reads and writes scales and statuses.
func subresources(ctx context.Context, w *world) error {
	deployments := w.typed.AppsV1().Deployments(w.namespace)
	if _, err := deployments.Apply(ctx, deploymentApply(w, 2, "web:1"), metav1.ApplyOptions{FieldManager: "one"}); err != nil {
		return err
	}
	scale, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	w.say("scale: %d %s", scale.Spec.Replicas, scale.Status.Selector)
	scale.Spec.Replicas = 5
	if scale, err = deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{}); err != nil {
		return err
	}
	w.say("scaled: %d", scale.Spec.Replicas)
	scale.ResourceVersion = "1"
	_, err = deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{})
	w.say("stale: %v", err)
	_, err = deployments.ApplyScale(ctx, "web", autoscaling.Scale().WithName("web").WithNamespace(w.namespace).
		WithSpec(autoscaling.ScaleSpec().WithReplicas(7)), metav1.ApplyOptions{FieldManager: "scaler"})
	w.say("apply scale: %v %v", err, apierrors.IsConflict(err))
	_, err = deployments.ApplyScale(ctx, "web", autoscaling.Scale().WithName("web").WithNamespace(w.namespace).
		WithSpec(autoscaling.ScaleSpec().WithReplicas(7)), metav1.ApplyOptions{FieldManager: "scaler", Force: true})
	w.say("forced: %v", err)
	current, err := deployments.Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	w.say("replicas %d generation %d", *current.Spec.Replicas, current.Generation)
	managers := []string{}
	for _, entry := range current.ManagedFields {
		managers = append(managers, fmt.Sprint(entry.Manager, " ", entry.Operation, " ", entry.Subresource))
	}
	sort.Strings(managers)
	w.say("managers: %s", strings.Join(managers, ", "))
	current.Status.Replicas = 4
	*current.Spec.Replicas = 1
	after, err := deployments.UpdateStatus(ctx, current, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	w.say("status %d, spec %d", after.Status.Replicas, *after.Spec.Replicas)
	current.Status.Replicas = -1
	current.ResourceVersion = after.ResourceVersion
	_, err = deployments.UpdateStatus(ctx, current, metav1.UpdateOptions{})
	w.say("invalid: %v", err)
	dry, err := deployments.Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":9}}`),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return err
	}
	w.say("dry run: %d, same version: %v", *dry.Spec.Replicas, dry.ResourceVersion == after.ResourceVersion)
	return nil
}

func boundPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "db"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}, NodeName: "n"},
	}
}

// evictions evicts Pods with and without a budget, whose status this program writes as its controller does.
func evictions(ctx context.Context, w *world) error {
	pods := w.typed.CoreV1().Pods(w.namespace)
	budgets := w.typed.PolicyV1().PodDisruptionBudgets(w.namespace)
	for _, name := range []string{"a", "b", "c"} {
		pod, err := pods.Create(ctx, boundPod(name), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	evict := func(name string, options *metav1.DeleteOptions) error {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}, DeleteOptions: options}
		// Without the retries of the typed client, which waits for as long as a budget forbids the eviction.
		err := w.typed.CoreV1().RESTClient().Post().Namespace(w.namespace).Resource("pods").Name(name).
			SubResource("eviction").Body(eviction).MaxRetries(0).Do(ctx).Error()
		delay, suggested := apierrors.SuggestsClientDelay(err)
		w.say("evict %s: %v (%s, delay %d %v)", name, err, apierrors.ReasonForError(err), delay, suggested)
		return err
	}
	_ = evict("none", nil)
	least := intstr.FromInt32(2)
	budget, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_ = evict("a", nil)
	budget.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation, DisruptionsAllowed: 1, CurrentHealthy: 3, DesiredHealthy: 2, ExpectedPods: 3,
	}
	if budget, err = budgets.UpdateStatus(ctx, budget, metav1.UpdateOptions{}); err != nil {
		return err
	}
	zero := int64(0)
	_ = evict("a", &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	_ = evict("a", &metav1.DeleteOptions{GracePeriodSeconds: &zero})
	_ = evict("b", nil)
	after, err := budgets.Get(ctx, "db", metav1.GetOptions{})
	if err != nil {
		return err
	}
	w.say("allowed %d, disrupted %d", after.Status.DisruptionsAllowed, len(after.Status.DisruptedPods))
	if _, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "second"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{}},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_ = evict("b", nil)
	pod, err := pods.Get(ctx, "c", metav1.GetOptions{})
	if err != nil {
		return err
	}
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := budgets.Delete(ctx, "second", metav1.DeleteOptions{}); err != nil {
		return err
	}
	_ = evict("c", &metav1.DeleteOptions{GracePeriodSeconds: &zero})
	left, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, one := range left.Items {
		w.say("left: %s deleted=%v", one.Name, one.DeletionTimestamp != nil)
	}
	return nil
}
