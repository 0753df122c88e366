package main

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	appsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
)

func deploymentApply(w *world, replicas int32, image string) *appsv1.DeploymentApplyConfiguration {
	labels := map[string]string{"app": "web"}
	return appsv1.Deployment("web", w.namespace).WithSpec(appsv1.DeploymentSpec().
		WithReplicas(replicas).
		WithSelector(applymeta.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(corev1.PodTemplateSpec().WithLabels(labels).WithSpec(corev1.PodSpec().
			WithContainers(corev1.Container().WithName("web").WithImage(image).
				WithPorts(corev1.ContainerPort().WithContainerPort(80))))))
}

// applying applies typed configurations by two managers, extracts what one owns, and applies a status and a scale.
func applying(ctx context.Context, w *world) error {
	deployments := w.typed.AppsV1().Deployments(w.namespace)
	one := metav1.ApplyOptions{FieldManager: "one"}
	two := metav1.ApplyOptions{FieldManager: "two"}
	made, err := deployments.Apply(ctx, deploymentApply(w, 2, "web:1"), one)
	if err != nil {
		return err
	}
	w.say("made generation %d with %d managers", made.Generation, len(made.ManagedFields))
	same, err := deployments.Apply(ctx, deploymentApply(w, 2, "web:1"), one)
	if err != nil {
		return err
	}
	w.say("unchanged: %v", same.ResourceVersion == made.ResourceVersion)
	_, err = deployments.Apply(ctx, deploymentApply(w, 3, "web:2"), two)
	w.say("conflict: %v %v", err, apierrors.IsConflict(err))
	two.Force = true
	if _, err = deployments.Apply(ctx, deploymentApply(w, 3, "web:2"), two); err != nil {
		return err
	}
	_, err = deployments.ApplyStatus(ctx, appsv1.Deployment("web", w.namespace).
		WithStatus(appsv1.DeploymentStatus().WithReplicas(3).WithConditions(appsv1.DeploymentCondition().
			WithType("Available").WithStatus("True"))), metav1.ApplyOptions{FieldManager: "status"})
	if err != nil {
		return err
	}
	current, err := deployments.Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, manager := range []string{"one", "two"} {
		extracted, err := appsv1.ExtractDeployment(current, manager)
		if err != nil {
			return err
		}
		text, err := json.Marshal(extracted)
		if err != nil {
			return err
		}
		w.say("%s owns %s", manager, text)
	}
	status, err := appsv1.ExtractDeploymentStatus(current, "status")
	if err != nil {
		return err
	}
	text, err := json.Marshal(status)
	if err != nil {
		return err
	}
	w.say("status owns %s", text)
	// Without its fields, a manager gives them up; those that nobody else owns are removed.
	_, err = deployments.Apply(ctx, appsv1.Deployment("web", w.namespace).WithLabels(map[string]string{"one": "yes"}), one)
	w.say("reduced: %v", err)
	invalid := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": map[string]any{"a": int64(1)},
	}}
	_, err = w.dynamic.Resource(configMaps).Namespace(w.namespace).Apply(ctx, "x", invalid, one)
	w.say("invalid: %v %s", err, apierrors.ReasonForError(err))
	return nil
}
