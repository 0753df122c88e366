"""A controller of Gauges with kopf: writes the status if it differs from the event's object.

Says "ready" on stdout when every object has been handled once, and ends when its stdin does.
"""

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading

import kopf

handled = set()
stop = threading.Event()


@kopf.on.startup()
async def configure(settings, **_):
    # worker_limit stays at its default, no limit: an idle worker would occupy a slot for 5 s after an event.
    settings.posting.enabled = False
    settings.scanning.disabled = True


@kopf.on.resume("bench.konverge.dev", "v1", "gauges")
@kopf.on.create("bench.konverge.dev", "v1", "gauges")
@kopf.on.update("bench.konverge.dev", "v1", "gauges", field="spec")
async def reconcile(name, spec, status, patch, **_):
    if status.get("seen") != spec["step"]:
        patch.status["seen"] = spec["step"]
    handled.add(name)
    if len(handled) == COUNT:
        print("ready", flush=True)


def end_with_stdin():
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    COUNT = int(sys.argv[1])
    logging.disable(logging.CRITICAL)
    threading.Thread(target=end_with_stdin, daemon=True).start()
    asyncio.run(kopf.operator(namespaces=["default"], standalone=True))
