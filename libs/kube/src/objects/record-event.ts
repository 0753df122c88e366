import {
  defined,
  formatApiVersion,
  type ApiObject,
  type ResourceRef,
  type ResourceType,
} from "@konverge/core";
import type { KubeClient } from "../contract/kube-client.ts";
import { isAlreadyExists } from "../errors/error-predicates.ts";
import type { NamespacedName } from "../names/resource-path.ts";

/** Longest values that the API server accepts, in bytes. */
const MAX_NOTE = 1_024;
const MAX_WORD = 128;
/** Object names may have 253 characters; this leaves room for the rest of the event's name. */
const MAX_BASE = 200;

interface EventObject extends ApiObject {
  eventTime?: string;
  note?: string;
  series?: { count: number; lastObservedTime: string };
}

const Event: ResourceType<EventObject> = {
  group: "events.k8s.io",
  version: "v1",
  kind: "Event",
  resource: "events",
  scope: "Namespaced",
};

export interface ObjectEventInput {
  /** The object that the event is about. */
  readonly regarding: ResourceRef;
  readonly type: "Normal" | "Warning";
  /** One CamelCase word for machines. */
  readonly reason: string;
  /** For users; truncated at 1 KiB. Must not contain secrets. */
  readonly message: string;
  /** What the component did, in one CamelCase word. Default `Reconcile`. */
  readonly action?: string | undefined;
  /** The reporting component, for example `konverge/node-pool`. */
  readonly component: string;
  /** Unix ms. Default: now. */
  readonly atMs?: number;
}

/**
 * Records a Kubernetes Event, as shown by `kubectl describe`, and returns its name. For a cluster-scoped object it is created in
 * `default`, as by client-go's recorder.
 */
export async function recordEvent(
  client: KubeClient,
  input: ObjectEventInput,
): Promise<NamespacedName> {
  const { regarding, type, reason, component, action = "Reconcile", atMs = Date.now() } = input;
  const nanoseconds = BigInt(atMs) * 1_000_000n + BigInt(Math.floor(Math.random() * 1e6));
  const name = `${regarding.name.slice(0, MAX_BASE)}.${nanoseconds.toString(16)}`;
  const at = { namespace: regarding.namespace ?? "default", name };
  const event = {
    metadata: at,
    regarding: {
      apiVersion: formatApiVersion(regarding.group, regarding.version),
      kind: regarding.kind,
      name: regarding.name,
      ...defined({ namespace: regarding.namespace, uid: regarding.uid }),
    },
    eventTime: microTime(atMs),
    type,
    reason: cut(reason, MAX_WORD),
    action: cut(action, MAX_WORD),
    note: cut(input.message, MAX_NOTE),
    reportingController: component,
    reportingInstance: cut(component, MAX_WORD),
  };
  try {
    await client.create(Event, event);
  } catch (error) {
    // A repeated create whose first response was lost.
    if (!isAlreadyExists(error)) throw error;
  }
  return at;
}

/** Counts an event again. @throws KubeApiError `isNotFound` if it has expired */
export async function repeatEvent(
  client: KubeClient,
  at: NamespacedName,
  { count, atMs }: { readonly count: number; readonly atMs: number },
): Promise<void> {
  const body = { series: { count, lastObservedTime: microTime(atMs) } };
  // Only this process writes the event, and each count replaces an older one.
  await client.patch(Event, at, { type: "merge", body }, { unguarded: true });
}

function microTime(atMs: number): string {
  return new Date(atMs).toISOString().replace("Z", "000Z");
}

/** Truncates a text to a number of bytes, between two characters. */
function cut(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  return new TextDecoder().decode(bytes.subarray(0, maxBytes), { stream: true });
}
