"""A namespace of an API server, and a process of `kopf run` in it."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import kubernetes
from kubernetes.client.exceptions import ApiException

FOLDER = os.path.dirname(os.path.abspath(__file__))
END = time.monotonic() + 100
GADGETS = {"group": "foreign.konverge.dev", "version": "v1", "plural": "gadgets"}
CLAIMS = {"group": "kopf.dev", "version": "v1", "plural": "ephemeralvolumeclaims"}
PEERINGS = {"group": "kopf.dev", "version": "v1", "plural": "kopfpeerings"}


def until(what, check):
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > END:
            raise TimeoutError(f"never: {what}")
        time.sleep(0.05)


class World:
    def __init__(self):
        kubernetes.config.load_kube_config()
        _, context = kubernetes.config.list_kube_config_contexts()
        self.namespace = context["context"]["namespace"]
        self.core = kubernetes.client.CoreV1Api()
        self.custom = kubernetes.client.CustomObjectsApi()

    def create(self, of, kind, name, spec=None, **metadata):
        body = {"apiVersion": f"{of['group']}/v1", "kind": kind, "metadata": {"name": name, **metadata}}
        if spec is not None:
            body["spec"] = spec
        return self.custom.create_namespaced_custom_object(namespace=self.namespace, body=body, **of)

    def gadget(self, name, spec, **metadata):
        return self.create(GADGETS, "Gadget", name, spec, **metadata)

    def read(self, name, of=GADGETS):
        try:
            return self.custom.get_namespaced_custom_object(namespace=self.namespace, name=name, **of)
        except ApiException as error:
            if error.status == 404:
                return None
            raise

    def patch(self, name, body, of=GADGETS):
        return self.custom.patch_namespaced_custom_object(namespace=self.namespace, name=name, body=body, **of)

    def delete(self, name, of=GADGETS):
        return self.custom.delete_namespaced_custom_object(namespace=self.namespace, name=name, **of)

    def config_map(self, name, data=None, **metadata):
        return self.core.create_namespaced_config_map(self.namespace, {"metadata": {"name": name, **metadata}, "data": data})

    def show(self, item):
        """Prints an object without managers, whose times and order the server chooses."""
        plain = kubernetes.client.ApiClient().sanitize_for_serialization(item)
        plain["metadata"].pop("managedFields", None)
        print(json.dumps(plain, sort_keys=True, indent=1))


class Process:
    """A program, and the lines that it prints."""

    def __init__(self, *command):
        self.process = subprocess.Popen(
            [sys.executable, "-B", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.lines = []
        self.log = []
        self.threads = [
            threading.Thread(target=self.collect, args=(self.process.stdout, self.lines)),
            threading.Thread(target=self.collect, args=(self.process.stderr, self.log)),
        ]
        for thread in self.threads:
            thread.start()

    def collect(self, stream, lines):
        for line in stream:
            lines.append(line.rstrip())

    def has(self, line):
        until(line, lambda: line in self.lines)

    def logged(self, text):
        until(f"log: {text}", lambda: any(text in line for line in self.log))

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(30)
        for thread in self.threads:
            thread.join(10)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.stop()
        if kind is not None:
            errors = [line for line in self.log if "[INFO" not in line and "[DEBUG" not in line]
            print("\n".join([*self.lines, *errors]), file=sys.stderr)


def operator(world, file, *options):
    command = ["-m", "kopf", "run", "--verbose", "--namespace", world.namespace, *options]
    return Process(*command, os.path.join(FOLDER, file))
