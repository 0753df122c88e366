"""Scenarios with the informer and the leader election of the kubernetes package."""

import os
import signal
import threading

import kubernetes
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from world import FOLDER, Process, until

LOCKS = {"lease": LeaseLock, "config-map": ConfigMapLock}


def informer(world):
    seen = []
    lock = threading.Lock()

    def note(kind):
        def handler(item):
            with lock:
                seen.append(f"{kind} {item.metadata.name} {item.data}")
        return handler

    world.config_map("before", {"a": "1"}, labels={"app": "in"})
    world.config_map("other", {"a": "1"}, labels={"app": "out"})
    informer = SharedInformer(
        list_func=world.core.list_namespaced_config_map, namespace=world.namespace, label_selector="app in (in)"
    )
    for kind in ["ADDED", "MODIFIED", "DELETED"]:
        informer.add_event_handler(kind, note(kind))
    informer.start()
    until("the first list", lambda: "ADDED before {'a': '1'}" in seen)
    for name, label in [("in", "in"), ("moving", "in"), ("out", "out")]:
        world.config_map(name, {"n": "0"}, labels={"app": label})
    for name, label, number in [("in", "in", "1"), ("moving", "out", "1"), ("out", "in", "1")]:
        body = {"metadata": {"labels": {"app": label}}, "data": {"n": number}}
        world.core.patch_namespaced_config_map(name, world.namespace, body)
    world.core.delete_namespaced_config_map("before", world.namespace)
    until("the last event", lambda: any(line.startswith("DELETED before") for line in seen))
    print("\n".join(seen))
    print("cached:", sorted(item.metadata.name for item in informer.cache.list()))
    informer.stop()


def election(world):
    """A candidate leads and is killed; the other one follows when its lease has expired."""
    for lock in LOCKS:
        with candidate(lock, "first") as first:
            first.has("first leads")
            with candidate(lock, "second") as second:
                second.logged("first")
                first.stop(signal.SIGKILL)
                second.has("second leads")
                second.stop(signal.SIGKILL)
                print(lock, first.lines, second.lines)
    spec = kubernetes.client.CoordinationV1Api().read_namespaced_lease("leader", world.namespace).spec
    print(spec.holder_identity, spec.lease_transitions, spec.lease_duration_seconds)
    print(sorted(world.core.read_namespaced_config_map("leader", world.namespace).metadata.annotations))


def candidate(lock, name):
    return Process(os.path.join(FOLDER, "main.py"), "--candidate", lock, name)


def lead(world, lock, name):
    config = electionconfig.Config(
        LOCKS[lock]("leader", world.namespace, name),
        lease_duration=3,
        renew_deadline=2,
        retry_period=1,
        onstarted_leading=lambda: print(f"{name} leads", flush=True),
        onstopped_leading=lambda: print(f"{name} stopped", flush=True),
    )
    leaderelection.LeaderElection(config).run()
