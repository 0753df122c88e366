import { defined, formatApiVersion, type ResourceRef } from "@konverge/core";
import { isAlreadyExists } from "../errors/error-predicates.ts";
import type { KubeClient } from "../contract/kube-client.ts";
import { Event } from "../names/kinds.ts";

const MAX_MESSAGE = 1_024;
/** Object names may have 253 characters; this leaves room for the rest of the event's name. */
const MAX_BASE = 200;

export interface ObjectEventInput {
  /** The object that the event is about. */
  readonly regarding: ResourceRef & { readonly uid?: string };
  readonly type: "Normal" | "Warning";
  /** One CamelCase word for machines. */
  readonly reason: string;
  /** For users; truncated at 1024 characters. Must not contain secrets. */
  readonly message: string;
  /** The reporting component, for example `konverge/node-pool`. */
  readonly component: string;
  readonly at?: Date;
}

/**
 * Records a Kubernetes Event, as shown by `kubectl describe`. For a cluster-scoped object it is created in `default`,
 * as in client-go's recorder.
 */
export async function recordEvent(client: KubeClient, input: ObjectEventInput): Promise<void> {
  const { regarding, type, reason, component, at = new Date() } = input;
  const namespace = regarding.namespace ?? "default";
  const seconds = at.toISOString().replace(/\.\d+Z$/, "Z");
  const nanoseconds = BigInt(at.getTime()) * 1_000_000n + BigInt(Math.floor(Math.random() * 1e6));
  const event = {
    metadata: {
      namespace,
      name: `${regarding.name.slice(0, MAX_BASE)}.${nanoseconds.toString(16)}`,
    },
    involvedObject: {
      apiVersion: formatApiVersion(regarding.group, regarding.version),
      kind: regarding.kind,
      name: regarding.name,
      ...defined({ namespace: regarding.namespace, uid: regarding.uid }),
    },
    type,
    reason,
    message: input.message.slice(0, MAX_MESSAGE),
    source: { component },
    reportingComponent: component,
    reportingInstance: component,
    firstTimestamp: seconds,
    lastTimestamp: seconds,
    count: 1,
  };
  try {
    await client.create(Event, event);
  } catch (error) {
    // A repeated create whose first response was lost.
    if (!isAlreadyExists(error)) throw error;
  }
}
