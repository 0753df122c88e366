import {
  defined,
  findNameIssue,
  isKonvergeError,
  type ApiObject,
  type JsonObject,
  type ResourceType,
} from "@konverge/core";
import {
  isForbidden,
  listFieldOwners,
  readinessOf,
  type FieldOwner,
  type KubeClient,
  type NamespacedName,
} from "@konverge/kube";
import { redactObject } from "@konverge/records";
import type { Controller } from "../define/define-controller.ts";
import type { ObjectStores } from "./object-store.ts";
import { readSelected } from "./read-selected.ts";

/** A reference to an owner or a child. */
interface ObjectLink {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  /** True for the owner that controls the object. */
  readonly isController?: boolean;
  /** Of a child, by kstatus. */
  readonly status?: string;
}

/** A Kubernetes event about the object. */
interface ObjectEventView {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  readonly source: string;
  /** Missing if the source did not set it. */
  readonly lastAt?: string;
}

/**
 * An object as the API server has it, without secrets. `missing`: it does not exist, or the controller does not reconcile it, since
 * it is outside of the namespaces and selectors of `for`.
 */
export type DescribedObject =
  | { readonly kind: "missing"; readonly readAt: string }
  | {
      readonly kind: "found";
      readonly readAt: string;
      /** True if the kind is sensitive: only the identity of the object has values. */
      readonly isRedacted: boolean;
      readonly object: JsonObject;
      readonly fieldOwners: readonly FieldOwner[];
      readonly owners: readonly ObjectLink[];
      /** From the caches of the worker: objects of the kinds that the controller owns. */
      readonly children: readonly ObjectLink[];
      readonly moreChildren: number;
      /** Latest first. */
      readonly events: readonly ObjectEventView[];
      /** The error of reading the events. */
      readonly eventsError?: string;
    };

interface CoreEvent extends ApiObject {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly count?: number | null;
  readonly eventTime?: string | null;
  readonly firstTimestamp?: string | null;
  readonly lastTimestamp?: string | null;
  readonly series?: { readonly count?: number; readonly lastObservedTime?: string };
  readonly source?: { readonly component?: string };
  readonly reportingComponent?: string;
}

const CoreEvent: ResourceType<CoreEvent> = {
  group: "",
  version: "v1",
  kind: "Event",
  resource: "events",
  scope: "Namespaced",
};

const MAX_EVENTS = 50;
const MAX_CHILDREN = 100;
const MAX_OWNERS = 2_000;

/**
 * Reads the object of a controller, its events and its children for the object's page. Values of sensitive kinds are redacted
 * (P12). Costs two API calls. @throws as `KubeClient.get`
 */
export async function describeObject(
  { controller, client, stores, isInScope }: DescribeOptions,
  target: NamespacedName,
): Promise<DescribedObject> {
  const { namespace } = target;
  const type = controller.for;
  const readAt = new Date().toISOString();
  const isPossible =
    findNameIssue(type, target) === undefined &&
    (namespace === undefined || (await isInScope(namespace)));
  const object = isPossible ? await readSelected(client, controller, target) : undefined;
  if (object === undefined) return { kind: "missing", readAt };
  const sensitive = client.isSensitive(type);
  const { uid, ownerReferences = [] } = object.metadata;
  const children = uid === undefined ? [] : childrenOf({ controller, stores }, object, uid);
  return {
    kind: "found",
    readAt,
    isRedacted: sensitive,
    object: redactObject(object as unknown as JsonObject, { sensitive }),
    fieldOwners: listFieldOwners(object, { sensitive }).slice(0, MAX_OWNERS),
    owners: ownerReferences.map(({ apiVersion, kind, name: owner, controller: isController }) => ({
      apiVersion,
      kind,
      ...defined({ namespace }),
      name: owner,
      ...(isController === true ? { isController } : {}),
    })),
    children: children.slice(0, MAX_CHILDREN),
    moreChildren: Math.max(0, children.length - MAX_CHILDREN),
    ...(await readEvents(client, object, sensitive)),
  };
}

interface DescribeOptions {
  readonly controller: Controller;
  readonly client: KubeClient;
  readonly stores: ObjectStores;
  /** True if the controller reconciles objects of the namespace. */
  readonly isInScope: (namespace: string) => boolean | Promise<boolean>;
}

function childrenOf(
  { controller, stores }: Pick<DescribeOptions, "controller" | "stores">,
  owner: ApiObject,
  ownerUid: string,
): ObjectLink[] {
  const { namespace } = owner.metadata;
  const found = new Map<string, ObjectLink>();
  for (const { type, option } of controller.sources) {
    if (option !== "owns") continue;
    for (const store of stores.started(type, namespace)) {
      for (const child of store.list({ ownerUid, ...defined({ namespace }) })) {
        found.set(child.metadata.uid ?? child.metadata.name, {
          apiVersion: child.apiVersion,
          kind: child.kind,
          ...defined({ namespace: child.metadata.namespace }),
          name: child.metadata.name,
          ...(type.keep === undefined
            ? { status: readinessOf(child, { none: "ready" }).status }
            : {}),
        });
      }
    }
  }
  return [...found.values()];
}

/** Events may quote the object, so those of sensitive kinds have no message. */
async function readEvents(
  client: KubeClient,
  { metadata: { uid, namespace } }: ApiObject,
  sensitive: boolean,
): Promise<{ readonly events: readonly ObjectEventView[]; readonly eventsError?: string }> {
  if (uid === undefined) return { events: [] };
  try {
    const { items } = await client.list(CoreEvent, {
      // Events of cluster-scoped objects are in `default`.
      namespace: namespace ?? "default",
      fieldSelector: `involvedObject.uid=${uid}`,
      limit: 0,
    });
    const events = items.map((event) => viewOf(event, sensitive));
    return {
      events: events
        .toSorted((one, other) => ((one.lastAt ?? "") < (other.lastAt ?? "") ? 1 : -1))
        .slice(0, MAX_EVENTS),
    };
  } catch (error) {
    if (isForbidden(error)) {
      return {
        events: [],
        eventsError: 'the worker lacks the permission to list "events"; see docs/cluster.md',
      };
    }
    if (!isKonvergeError(error)) throw error;
    return { events: [], eventsError: error.message };
  }
}

function viewOf(event: CoreEvent, sensitive: boolean): ObjectEventView {
  const { type = "Normal", reason = "", message = "", series, source, reportingComponent } = event;
  const at =
    series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.firstTimestamp;
  return {
    type,
    reason,
    message: sensitive ? "(redacted)" : message.slice(0, 1_024),
    count: series?.count ?? event.count ?? 1,
    source: source?.component ?? reportingComponent ?? "",
    ...(typeof at === "string" ? { lastAt: at } : {}),
  };
}
