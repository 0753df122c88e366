package main

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// nothing discards logs.
type nothing struct{}

func (nothing) Write(bytes []byte) (int, error) { return len(bytes), nil }

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// noRequests handles the events of a watch that exists only to be opened.
type noRequests struct{}

func (noRequests) Create(context.Context, event.CreateEvent, queue)   {}
func (noRequests) Update(context.Context, event.UpdateEvent, queue)   {}
func (noRequests) Delete(context.Context, event.DeleteEvent, queue)   {}
func (noRequests) Generic(context.Context, event.GenericEvent, queue) {}
