import {
  formatApiVersion,
  isKonvergeError,
  KonvergeError,
  type ResourceType,
} from "@konverge/core";
import type { DiscoveredResource, KubeClient } from "@konverge/kube";
import { findCrdDrift } from "../define/crd-drift.ts";
import type { Controller } from "../define/define-controller.ts";
import type { Resource } from "../define/define-resource.ts";
import type { Log } from "../define/log.ts";

const INSTALL = "konverge crds --config <file> | kubectl apply -f -";

/**
 * A controller for a kind that the cluster does not serve would wait for ever, and one whose status cannot be written would
 * fail at every object; better not to start. A CRD that differs otherwise is only told: while versions of a controller take
 * turns, one of them always finds the other's.
 * @throws KonvergeError `crd_mismatch` with the cure
 */
export async function checkServed(
  controller: Controller,
  client: KubeClient,
  log: Log,
): Promise<void> {
  const types = [controller.for, ...controller.owns, ...controller.watches.map(({ type }) => type)];
  for (const type of types) {
    const { group, version, kind } = type;
    const apiVersion = formatApiVersion(group, version);
    const served = await client.resolveType(apiVersion, kind).catch((error: unknown): never => {
      // A server that could not be asked has not said no.
      if (!isKonvergeError(error) || error.code !== "not_found") throw error;
      throw mismatch(
        controller,
        `the cluster does not serve ${kind} in ${apiVersion}; install its CRD first (${INSTALL})`,
        error,
      );
    });
    const issue = servedIssue(type, served);
    if (issue !== undefined) throw mismatch(controller, issue);
    if (isResource(type)) await reportDrift(type, client, log);
  }
}

function servedIssue(type: ResourceType, served: DiscoveredResource): string | undefined {
  const { kind, resource, scope } = type;
  if (served.resource !== resource) {
    return `the cluster serves ${kind} as "${served.resource}", the definition says "${resource}"; set plural to "${served.resource}"`;
  }
  if (served.scope !== scope) {
    return `the cluster serves ${kind} with scope ${served.scope}, the definition says ${scope}; set scope to "${served.scope}", or delete the CRD and install it again (${INSTALL})`;
  }
  if (isResource(type) && type.hasStatus && !served.subresources.includes("status")) {
    return `${kind} has a status in its definition, but its CRD in the cluster has no status subresource, so no status could be written; install the CRD again (${INSTALL})`;
  }
  return undefined;
}

async function reportDrift(resource: Resource, client: KubeClient, log: Log): Promise<void> {
  const drift = await findCrdDrift(resource, client);
  if (drift.length === 0) return;
  const { kind } = resource;
  log.warn({ kind, fields: drift, fix: INSTALL }, "CRD differs from definition");
}

function isResource(type: ResourceType): type is Resource {
  return "crd" in type;
}

function mismatch({ name }: Controller, what: string, cause?: unknown): KonvergeError {
  const options = cause === undefined ? {} : { cause };
  return new KonvergeError("crd_mismatch", `controller "${name}": ${what}`, options);
}
