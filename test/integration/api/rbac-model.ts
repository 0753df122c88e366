import { INSTALLATION_VERBS, RIGHTS } from "../../../libs/api/src/rights/rights-table.ts";
import { KINDS, requestOf, type Operation, type Target } from "./api-targets.ts";
import { GROUP, type Rule } from "./kubernetes-users.ts";

/** The rules of a role, and where they are bound. */
export interface Grant {
  /** Undefined: all. */
  readonly namespace?: string;
  readonly rules: readonly Rule[];
}
export interface Asked {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

/** RBAC in its simplest form. */
export function grants({ namespace, rules }: Grant, asked: Asked): boolean {
  if (namespace !== undefined && namespace !== asked.namespace) return false;
  return rules.some(
    ({ apiGroups, resources, verbs, resourceNames }) =>
      apiGroups.includes(asked.group) &&
      resources.includes(asked.resource) &&
      verbs.includes(asked.verb) &&
      (resourceNames === undefined ||
        (asked.name !== undefined && resourceNames.includes(asked.name))),
  );
}

/** The rights that the table of docs/identity.md names; undefined if only one on the installation counts. */
export function askedFor(
  operation: Operation,
  target: Target,
  isNarrow: boolean,
): Asked[] | undefined {
  const right = RIGHTS[operation.operationId];
  if (right?.on === "nothing") return [];
  if (target.cluster !== "default" || right === undefined) return undefined;
  const isCluster = target.namespace === "_";
  const place = isCluster ? {} : { namespace: target.namespace };
  const kind = { group: GROUP, resource: KINDS[target.controller] ?? "", ...place };
  const names = JSON.stringify(requestOf(operation, target, isNarrow));
  switch (right.on) {
    case "installation":
      return undefined;
    case "object":
      return [{ verb: right.verb, ...kind, name: target.name }];
    case "items":
      return [{ verb: right.verb, ...kind }];
    case "objects": {
      if (!names.includes(target.controller)) return undefined;
      const isOfNamespace = names.includes("namespace=");
      return [{ ...kind, verb: right.verb, ...(isOfNamespace ? {} : { namespace: undefined }) }];
    }
    case "workflow": {
      if (!names.includes(target.workflow)) return undefined;
      const verb = right.verb === "action" ? "pause" : right.verb;
      return [{ verb, group: "konverge.dev", resource: "workflows", name: target.workflow }];
    }
    case "mutation": {
      const resource = isCluster ? "planets" : "widgets";
      if (right.verb === "list") return undefined;
      return [{ verb: right.verb, group: GROUP, resource, ...place, name: target.name }];
    }
  }
}

/** True if the roles also give what was asked for on another target, as a right on all namespaces does. */
export function mayShow(
  user: readonly Grant[],
  asked: readonly Asked[] | undefined,
  { cluster, controller, namespace, name }: Target,
): boolean {
  if (cluster !== "default") return false;
  const place = namespace === "_" ? {} : { namespace };
  const object = { group: GROUP, resource: KINDS[controller] ?? "", ...place, name };
  const verbs = (asked ?? []).map(({ verb }) => verb);
  return verbs.some((verb) => user.some((grant) => grants(grant, { verb, ...object })));
}

/** True if a user with these roles may make the request. */
export function isExpected(
  user: readonly Grant[],
  {
    operation,
    asked,
    installation,
  }: {
    readonly operation: Operation;
    readonly asked: readonly Asked[] | undefined;
    readonly installation: string;
  },
): boolean {
  const has = (right: Asked) => user.some((grant) => grants(grant, right));
  if (has(onInstallation(operation, installation))) return true;
  return (
    asked?.every(
      (right) => has(right) || (right.verb === "reconcile" && has({ ...right, verb: "patch" })),
    ) === true
  );
}

/** The right on the installation that replaces the others. */
export function onInstallation(operation: Operation, installation: string): Asked {
  const [, role = "viewer"] = /Role: (\w+)/.exec(JSON.stringify(operation)) ?? [];
  return {
    verb: INSTALLATION_VERBS[role as keyof typeof INSTALLATION_VERBS],
    group: "konverge.dev",
    resource: "installations",
    name: installation,
  };
}
