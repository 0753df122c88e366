// A controller of Gauges with controller-runtime: reads from its cache, writes the status if it differs.
//
// Says "ready" on stdout when every object has been reconciled once, and ends when its stdin does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

type Part struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type Spec struct {
	Step  int64  `json:"step"`
	Parts []Part `json:"parts,omitempty"`
}

type Status struct {
	Seen int64 `json:"seen,omitempty"`
}

type Gauge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status,omitempty"`
}

type GaugeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Gauge `json:"items"`
}

func (g *Gauge) DeepCopyObject() runtime.Object {
	out := *g
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Parts = slices.Clone(g.Spec.Parts)
	return &out
}

func (l *GaugeList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Gauge, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Gauge)
	}
	return &out
}

type reconciler struct {
	client.Client
	reconciles *atomic.Int64
	progress   chan struct{}
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	defer func() {
		r.reconciles.Add(1)
		select {
		case r.progress <- struct{}{}:
		default:
		}
	}()
	var gauge Gauge
	if err := r.Get(ctx, request.NamespacedName, &gauge); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if gauge.Status.Seen == gauge.Spec.Step {
		return ctrl.Result{}, nil
	}
	gauge.Status.Seen = gauge.Spec.Step
	return ctrl.Result{}, r.Status().Update(ctx, &gauge)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	path := flag.Lookup("kubeconfig")
	concurrency := flag.Int("concurrency", 1, "MaxConcurrentReconciles")
	qps := flag.Float64("qps", -1, "client-side calls per second; below 0 is no limit, as controller-runtime has it")
	burst := flag.Int("burst", 0, "client-side burst")
	flag.Parse()
	log.SetLogger(log.Log.WithSink(log.NullLogSink{}))
	if path == nil || path.Value.String() == "" {
		return errors.New("-kubeconfig: name a kubeconfig")
	}

	config, err := clientcmd.BuildConfigFromFlags("", path.Value.String())
	if err != nil {
		return err
	}
	config.QPS = float32(*qps)
	config.Burst = *burst
	scheme := runtime.NewScheme()
	group := schema.GroupVersion{Group: "bench.konverge.dev", Version: "v1"}
	scheme.AddKnownTypes(group, &Gauge{}, &GaugeList{})
	metav1.AddToGroupVersion(scheme, group)
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	var reconciles atomic.Int64
	progress := make(chan struct{}, 1)
	err = ctrl.NewControllerManagedBy(mgr).
		Named("gauge").
		For(&Gauge{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: *concurrency}).
		Complete(&reconciler{mgr.GetClient(), &reconciles, progress})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	go func() {
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return
		}
		var all GaugeList
		if err := mgr.GetClient().List(ctx, &all); err != nil {
			fmt.Fprintln(os.Stderr, err)
			cancel()
			return
		}
		for reconciles.Load() < int64(len(all.Items)) {
			select {
			case <-progress:
			case <-ctx.Done():
				return
			}
		}
		fmt.Println("ready")
	}()
	return mgr.Start(ctx)
}
