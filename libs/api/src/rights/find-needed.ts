import type { Scope } from "@konverge/contracts";
import { defined, KonvergeError, NO_NAMESPACE } from "@konverge/core";
import { MUTATIONS } from "@konverge/mutations";
import { parseRunId } from "@konverge/workflow";
import type { AskedRight } from "../access/kubernetes-reviews.ts";
import { findOpenKind } from "../mutations/find-open-kind.ts";
import { parseMutationId } from "../mutations/mutation-view.ts";
import { readMutation } from "../mutations/submit-mutations.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { keyOfRequest } from "../queues/queue-actions.ts";
import { placeIn } from "../runs/find-run.ts";
import type { MutationVerb, NeededRight, ObjectVerb, WorkflowVerb } from "./rights-table.ts";

/** The group of the resources that exist only in roles. */
export const OWN_GROUP = "konverge.dev";
/**
 * The groups of kinds that grant rights or identities. The API server checks their changes against other rights of the
 * writer, such as `escalate`, `bind`, `approve` and `sign`. The writer of a mutation is a worker, so `patch` on such an
 * object is not enough.
 */
export const GRANTING_GROUPS: readonly string[] = [
  "admissionregistration.k8s.io",
  "apiregistration.k8s.io",
  "authentication.k8s.io",
  "authorization.k8s.io",
  "certificates.k8s.io",
  "rbac.authorization.k8s.io",
];
/** Larger batches would ask the API server for each of their namespaces. */
const MOST_PLACES = 50;

/** The parts of a request that name its target. */
export interface Target {
  readonly cluster?: string | undefined;
  readonly controller?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly id?: string | undefined;
  readonly kind?: string | undefined;
  readonly apiVersion?: string | undefined;
  readonly workflow?: string | undefined;
  readonly action?: string | undefined;
  readonly subresource?: string | undefined;
  readonly create?: unknown;
  readonly changes?: readonly { readonly kind: string }[] | undefined;
  readonly filter?: { readonly workflow?: string | undefined } | undefined;
  readonly items?: readonly Target[] | undefined;
}

/** The rights for a request, all of which are needed, and the only scope in which they count. */
export interface Needed {
  readonly rights: readonly AskedRight[];
  readonly scope: Scope;
}

/** Returns undefined if only a right on the installation suffices, such as for another cluster than `home`. */
export async function findNeeded(
  access: QueueAccess,
  right: NeededRight,
  { target, home }: { readonly target: Target; readonly home: string },
): Promise<Needed | undefined> {
  switch (right.on) {
    case "nothing":
    case "installation":
      return undefined;
    case "object":
      return await ofController(access, keyed(target), { verb: right.verb, home, named: true });
    case "objects":
      return await ofController(access, target, { verb: right.verb, home, named: false });
    case "items":
      return await ofItems(access, target.items ?? [], { verb: right.verb, home });
    case "workflow":
      return ofWorkflow(target, right.verb, home);
    case "mutation":
      return await ofMutation(access, target, { verb: right.verb, home });
  }
}

/** Adds the parts of the key in the ID of a request. A plan has an ID as well, below its object. */
function keyed(target: Target): Target {
  if (target.controller !== undefined || target.id === undefined) return target;
  const { cluster, controller, namespace = NO_NAMESPACE, name } = keyOfRequest(target.id);
  return { ...target, cluster, controller, namespace, name };
}

async function ofController(
  access: QueueAccess,
  { cluster, controller, namespace, name }: Target,
  asked: { readonly verb: ObjectVerb; readonly home: string; readonly named: boolean },
): Promise<Needed | undefined> {
  const { verb, home, named } = asked;
  if (cluster !== home || controller === undefined) return undefined;
  const { announced } = await access.find(home, controller);
  const { group, resource, scope } = announced;
  // The namespace of a cluster-scoped object would be that of another role.
  const isOfAll = scope === "Cluster" || namespace === undefined || namespace === NO_NAMESPACE;
  const place = isOfAll ? {} : { namespace };
  const one = named ? defined({ name }) : {};
  // As the handler reads the request: an object without a namespace is cluster-scoped.
  const only = namespace ?? (named && name !== undefined ? NO_NAMESPACE : undefined);
  return {
    rights: [{ verb, group, resource, ...place, ...one }],
    scope: {
      clusters: [home],
      controllers: [controller],
      ...(only === undefined ? {} : { namespaces: [only] }),
    },
  };
}

async function ofItems(
  access: QueueAccess,
  items: readonly Target[],
  { verb, home }: { readonly verb: ObjectVerb; readonly home: string },
): Promise<Needed | undefined> {
  const places = new Map(
    items.map(({ cluster, controller, namespace = NO_NAMESPACE }) => [
      JSON.stringify([cluster, controller, namespace]),
      { cluster, controller, namespace },
    ]),
  );
  checkCount(places.size);
  const found = await Promise.all(
    [...places.values()].map((place) => ofController(access, place, { verb, home, named: false })),
  );
  return joined(found);
}

function ofWorkflow(
  { cluster, id, workflow, filter, action }: Target,
  verb: WorkflowVerb | "action",
  home: string,
): Needed | undefined {
  // A new run has an ID without its workflow.
  const run =
    id === undefined || workflow !== undefined
      ? { cluster, workflow: workflow ?? filter?.workflow }
      : parseRunId(id);
  if (run.cluster !== home || run.workflow === undefined) return undefined;
  const place = placeIn(home, run.workflow);
  const asked = verb === "action" ? verbOf(action) : verb;
  return {
    rights: [{ verb: asked, group: OWN_GROUP, resource: "workflows", name: run.workflow }],
    scope: {
      clusters: [home],
      controllers: [place.controller],
      namespaces: [place.namespace],
    },
  };
}

/** To resume is the right to pause. */
function verbOf(action: string | undefined): string {
  return action === "resume" ? "pause" : (action ?? "");
}

async function ofMutation(
  access: QueueAccess,
  { id, items, ...target }: Target,
  {
    verb,
    home,
    ofBatch = false,
  }: { readonly verb: MutationVerb; readonly home: string; readonly ofBatch?: boolean },
): Promise<Needed | undefined> {
  if (items !== undefined) {
    checkCount(new Set(items.map(({ kind, namespace }) => JSON.stringify([kind, namespace]))).size);
    const found = await Promise.all(
      items.map((item) => ofMutation(access, item, { verb, home, ofBatch: true })),
    );
    return joined(found);
  }
  // A new mutation may have an ID of its caller.
  const named = target.kind === undefined && id !== undefined ? parseMutationId(id) : undefined;
  const cluster = named?.cluster ?? target.cluster;
  if (cluster !== home) return undefined;
  const { mutations, kinds } = await access.mutations(home);
  const known = named && (await readMutation(mutations, named.id)).object;
  const { namespace, name, kind } = known ?? target;
  if (kind === undefined) return undefined;
  const { group, resource } = known ?? findOpenKind(kinds, { ...target, cluster, kind });
  if (verb === "patch" && GRANTING_GROUPS.includes(group)) return undefined;
  const place = namespace === NO_NAMESPACE ? {} : defined({ namespace });
  const { subresource, create, changes = [] } = target;
  const whole = { group, resource, ...place };
  const isCreating = create !== undefined || changes.some((change) => change.kind === "apply");
  // A right on all names, so that a large batch needs few reviews.
  const one = verb === "list" ? {} : defined({ name: ofBatch ? undefined : name, subresource });
  return {
    rights: [
      { verb, ...whole, ...one },
      // The API server asks for the same two rights.
      ...(isCreating ? [{ verb: "create", ...whole }] : []),
    ],
    scope: {
      clusters: [home],
      controllers: [MUTATIONS],
      ...(verb === "list" && namespace === undefined
        ? {}
        : { namespaces: [namespace ?? NO_NAMESPACE] }),
      kinds: [kind],
    },
  };
}

/** Adds up the rights of a batch. All are needed, so that the scope allows no other combination. */
function joined(found: readonly (Needed | undefined)[]): Needed | undefined {
  const all = found.filter((each) => each !== undefined);
  if (all.length < found.length) return undefined;
  const rights = new Map(
    all.flatMap((each) => each.rights).map((right) => [JSON.stringify(right), right]),
  );
  const names = (field: keyof Scope) => [
    ...new Set(all.flatMap(({ scope }) => scope[field] ?? [])),
  ];
  const kinds = names("kinds");
  return {
    rights: [...rights.values()],
    scope: {
      clusters: names("clusters"),
      controllers: names("controllers"),
      namespaces: names("namespaces"),
      ...(kinds.length === 0 ? {} : { kinds }),
    },
  };
}

function checkCount(places: number): void {
  if (places <= MOST_PLACES) return;
  const detail = `with a Kubernetes token, a batch may have at most ${MOST_PLACES} combinations of controller or kind, and namespace (got ${places}); split it`;
  throw new KonvergeError("invalid_request", detail, {
    issues: [{ pointer: "/items", detail }],
  });
}
