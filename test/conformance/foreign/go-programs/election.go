package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// quietLock sends no update of the Lease while its candidate is stopped. The elector would release the Lease between an
// update and its answer, fail with a conflict, and the next candidate would wait until the Lease expires.
type quietLock struct {
	*resourcelock.LeaseLock
	sending sync.Mutex
}

func (lock *quietLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	lock.sending.Lock()
	defer lock.sending.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return lock.LeaseLock.Update(ctx, record)
}

func (lock *quietLock) stop(cancel context.CancelFunc) {
	lock.sending.Lock()
	defer lock.sending.Unlock()
	cancel()
}

// election has a leader that releases its Lease, and a second one that follows.
func election(ctx context.Context, w *world) error {
	history := make(chan string, 10)
	for _, name := range []string{"first", "second"} {
		inner, stop := context.WithCancel(ctx)
		lock := &quietLock{LeaseLock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: w.namespace},
			Client:     w.typed.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			leaderelection.RunOrDie(inner, leaderelection.LeaderElectionConfig{
				Lock: lock, ReleaseOnCancel: true,
				LeaseDuration: 60 * time.Second, RenewDeadline: 40 * time.Second, RetryPeriod: 200 * time.Millisecond,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { history <- name + " leads" },
					OnStoppedLeading: func() { history <- name + " stopped" },
				},
			})
		}()
		w.say("%s", <-history)
		lease, err := w.typed.CoordinationV1().Leases(w.namespace).Get(ctx, "leader", metav1.GetOptions{})
		if err != nil {
			stop()
			return err
		}
		w.say("holder %s, transitions %d, %d s", *lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions, *lease.Spec.LeaseDurationSeconds)
		lock.stop(stop)
		<-ended
		w.say("%s", <-history)
	}
	lease, err := w.typed.CoordinationV1().Leases(w.namespace).Get(ctx, "leader", metav1.GetOptions{})
	if err != nil {
		return err
	}
	w.say("released: %q", fmt.Sprint(*lease.Spec.HolderIdentity))
	return nil
}
