"""Runs operators written with kopf, and programs with the kubernetes package, against the server of a kubeconfig, and
prints what they see. The conformance tests compare the output of two servers. Usage: main.py SCENARIO."""

import logging
import sys

import clients
import operators
from world import World

SCENARIOS = {
    "kopf-tutorial": operators.tutorial,
    "kopf-handlers": operators.handlers,
    "kopf-peering": operators.peering,
    "informer": clients.informer,
    "election": clients.election,
}

if __name__ == "__main__":
    if sys.argv[1] == "--candidate":
        logging.basicConfig(level=logging.INFO)
        clients.lead(World(), *sys.argv[2:])
    for name in sys.argv[1:]:
        print(f"== {name}")
        SCENARIOS[name](World())
