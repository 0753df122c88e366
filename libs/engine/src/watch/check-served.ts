import {
  formatApiVersion,
  isKonvergeError,
  KonvergeError,
  type ResourceType,
} from "@konverge/core";
import { BUILT_IN_GROUPS, type DiscoveredResource, type KubeClient } from "@konverge/kube";
import { findCrdDrift } from "../define/crd-drift.ts";
import type { Controller } from "../define/define-controller.ts";
import type { Resource } from "../define/define-resource.ts";
import type { Log } from "../define/log.ts";

/** The command that installs or updates CRDs. */
const INSTALL = "konverge crds --config <file> --apply";

/**
 * A controller for a kind that the cluster does not serve would wait forever, and one whose status cannot be written would fail
 * for every object, so neither starts. Other differences of the CRD are only logged: during a rolling update of a controller,
 * one of its versions always finds the CRD of the other.
 * @throws KonvergeError `crd_mismatch` with a suggested fix
 */
export async function checkServed(
  controller: Controller,
  client: KubeClient,
  log: Log,
): Promise<void> {
  for (const { type } of controller.sources) {
    const { group, version, kind } = type;
    const apiVersion = formatApiVersion(group, version);
    const served = await client.resolveType(apiVersion, kind).catch((error: unknown): never => {
      // An unreachable server proves nothing about the kind.
      if (!isKonvergeError(error) || error.code !== "not_found") throw error;
      const text = BUILT_IN_GROUPS.has(group)
        ? error.message
        : `the cluster does not serve ${kind} in ${apiVersion}; install its CRD first (${INSTALL})`;
      throw mismatch(controller, text, error);
    });
    const issue = findServedIssue(type, served);
    if (issue !== undefined) throw mismatch(controller, issue);
    if (isResource(type)) await reportDrift(type, client, log);
  }
}

/** Returns the difference between a kind and its definition that stops a worker, with a suggested fix. */
export function findServedIssue(
  type: ResourceType,
  served: DiscoveredResource,
): string | undefined {
  const { kind, resource, scope } = type;
  if (served.resource !== resource) {
    return `the cluster serves ${kind} as "${served.resource}", but the definition has "${resource}"; set plural to "${served.resource}"`;
  }
  if (served.scope !== scope) {
    return `the cluster serves ${kind} with scope ${served.scope}, but the definition has ${scope}; set scope to "${served.scope}", or delete and reinstall the CRD (${INSTALL})`;
  }
  if (isResource(type) && type.hasStatus && !served.subresources.includes("status")) {
    return `${kind} has a status in its definition, but its CRD in the cluster has no status subresource; reinstall the CRD (${INSTALL})`;
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
