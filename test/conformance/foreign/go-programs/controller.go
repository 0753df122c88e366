package main

import (
	"context"
	"fmt"
	"sort"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	partGroup = "foreign.konverge.dev"
	finalizer = "foreign.konverge.dev/keep"
)

var partKind = schema.GroupVersionKind{Group: partGroup, Version: "v1", Kind: "Part"}

func part(namespace, name string) *unstructured.Unstructured {
	one := &unstructured.Unstructured{}
	one.SetGroupVersionKind(partKind)
	one.SetNamespace(namespace)
	one.SetName(name)
	return one
}

// partReconciler keeps a Deployment and a ConfigMap per Part, reports in the status, and cleans up behind a finalizer.
type partReconciler struct{ client.Client }

func (r *partReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	one := part("", "")
	if err := r.Get(ctx, request.NamespacedName, one); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: one.GetNamespace(), Name: one.GetName() + "-gone"}}
	if !one.GetDeletionTimestamp().IsZero() {
		if err := r.Create(ctx, record); client.IgnoreAlreadyExists(err) != nil {
			return ctrl.Result{}, err
		}
		controllerutil.RemoveFinalizer(one, finalizer)
		return ctrl.Result{}, r.Update(ctx, one)
	}
	if controllerutil.AddFinalizer(one, finalizer) {
		if err := r.Update(ctx, one); err != nil {
			return ctrl.Result{}, err
		}
	}
	size, _, _ := unstructured.NestedString(one.Object, "spec", "size")
	replicas, _, _ := unstructured.NestedInt64(one.Object, "spec", "replicas")
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: one.GetNamespace(), Name: one.GetName()}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		wanted := int32(replicas)
		deployment.Spec.Replicas = &wanted
		deployment.Labels = map[string]string{"size": size}
		if deployment.CreationTimestamp.IsZero() {
			deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"part": one.GetName()}}
			deployment.Spec.Template.Labels = map[string]string{"part": one.GetName()}
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "main:1"}}
		}
		return controllerutil.SetControllerReference(one, deployment, scheme.Scheme)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	before := one.DeepCopy()
	if err := unstructured.SetNestedField(one.Object, int64(deployment.Status.ReadyReplicas), "status", "replicas"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Patch(ctx, one, client.MergeFrom(before))
}

// runController runs a manager with the reconciler, scoped caches, an index and metadata-only watches.
func runController(ctx context.Context, w *world) error {
	ctrl.SetLogger(zap.New(zap.WriteTo(nothing{})))
	manager, err := ctrl.NewManager(w.config, ctrl.Options{
		Metrics:        server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "parts", LeaderElectionNamespace: w.namespace, LeaderElectionReleaseOnCancel: true,
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{w.namespace: {}},
			ByObject:          map[client.Object]cache.ByObject{&corev1.Secret{}: {Label: labels.SelectorFromSet(labels.Set{"kept": "yes"})}},
		},
	})
	if err != nil {
		return err
	}
	if err := manager.GetFieldIndexer().IndexField(ctx, &appsv1.Deployment{}, "size", func(object client.Object) []string {
		return []string{object.GetLabels()["size"]}
	}); err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).For(part("", "")).Owns(&appsv1.Deployment{}).
		WatchesMetadata(&corev1.ConfigMap{}, noRequests{}, builder.OnlyMetadata).Complete(&partReconciler{manager.GetClient()})
	if err != nil {
		return err
	}
	inner, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(inner) }()
	if err := changeParts(ctx, w, manager.GetClient()); err != nil {
		return err
	}
	stop()
	return <-ended
}

func changeParts(ctx context.Context, w *world, cached client.Client) error {
	direct, err := client.New(w.config, client.Options{})
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: w.namespace, Name: "wheel"}
	one := part(w.namespace, "wheel")
	one.Object["spec"] = map[string]any{"size": "s", "replicas": int64(2)}
	if err := direct.Create(ctx, one); err != nil {
		return err
	}
	deployment := &appsv1.Deployment{}
	if err := poll(ctx, func(ctx context.Context) (bool, error) {
		err := direct.Get(ctx, key, deployment)
		return err == nil, client.IgnoreNotFound(err)
	}); err != nil {
		return err
	}
	owner := deployment.OwnerReferences[0]
	w.say("owned by %s %s, controller %v, blocks %v", owner.Kind, owner.Name, *owner.Controller, *owner.BlockOwnerDeletion)
	deployment.Status.Replicas, deployment.Status.ReadyReplicas = 2, 2
	if err := direct.Status().Update(ctx, deployment); err != nil {
		return err
	}
	if err := poll(ctx, func(ctx context.Context) (bool, error) {
		current := part(w.namespace, "wheel")
		err := direct.Get(ctx, key, current)
		ready, _, _ := unstructured.NestedInt64(current.Object, "status", "replicas")
		return ready == 2, err
	}); err != nil {
		return fmt.Errorf("status: %w", err)
	}
	if err := direct.Patch(ctx, part(w.namespace, "wheel"), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"size":"m"}}`))); err != nil {
		return err
	}
	if err := poll(ctx, func(ctx context.Context) (bool, error) {
		found := &appsv1.DeploymentList{}
		err := cached.List(ctx, found, client.MatchingFields{"size": "m"}, client.InNamespace(w.namespace))
		return len(found.Items) == 1, err
	}); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	w.say("indexed")
	if err := scaleAndApply(ctx, w, direct); err != nil {
		return err
	}
	if err := direct.Delete(ctx, part(w.namespace, "wheel"), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return err
	}
	if err := poll(ctx, func(ctx context.Context) (bool, error) {
		err := direct.Get(ctx, key, part("", ""))
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}); err != nil {
		return fmt.Errorf("deletion: %w", err)
	}
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
	if err := direct.List(ctx, found, client.InNamespace(w.namespace)); err != nil {
		return err
	}
	names := []string{}
	for _, item := range found.Items {
		names = append(names, item.Name)
	}
	sort.Strings(names)
	w.say("recorded: %v", names)
	return direct.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(w.namespace))
}

func scaleAndApply(ctx context.Context, w *world, direct client.Client) error {
	one := part(w.namespace, "wheel")
	scale := &unstructured.Unstructured{}
	scale.SetGroupVersionKind(schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"})
	if err := direct.SubResource("scale").Get(ctx, one, scale); err != nil {
		return err
	}
	replicas, _, _ := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	w.say("scale %d", replicas)
	if err := unstructured.SetNestedField(scale.Object, int64(4), "spec", "replicas"); err != nil {
		return err
	}
	if err := direct.SubResource("scale").Update(ctx, one, client.WithSubResourceBody(scale)); err != nil {
		return err
	}
	applied := part(w.namespace, "wheel")
	applied.Object["spec"] = map[string]any{"size": "l"}
	err := direct.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("applier"))
	w.say("apply: %v", err)
	err = direct.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("applier"), client.ForceOwnership)
	w.say("forced: %v", err)
	stale := part(w.namespace, "wheel")
	stale.SetResourceVersion("1")
	stale.Object["spec"] = map[string]any{"size": "s"}
	w.say("stale: %v", direct.Update(ctx, stale))
	return nil
}
