import { defined, type JsonObject, type ResourceType } from "@konverge/core";
import type { DeleteOptions } from "../contract/kube-client.ts";
import { isOptimisticConflict } from "../errors/kube-api-error.ts";
import { conflictRecord } from "../mutate/conflict-record.ts";
import { query } from "../names/query-string.ts";
import { objectPath, type NamespacedName } from "../names/resource-path.ts";
import type { ScopedCalls } from "./scoped-calls.ts";
import { bodyText, type WriteRequest } from "./write-request.ts";

/** By default the server drops unknown fields and succeeds, so a misspelled field is written again and again. */
const fieldValidation = "Strict";

export async function sendWrite(
  calls: ScopedCalls,
  type: ResourceType,
  request: WriteRequest,
  signal: AbortSignal | undefined,
): Promise<JsonObject> {
  const { verb, method, path, contentType, target, subresource, force, expectedVersion } = request;
  return calls.json(
    {
      verb,
      method,
      path: path + query({ fieldManager: calls.fieldManagerFor(verb), fieldValidation, force }),
      contentType,
      body: bodyText(request),
      subresource,
      guarded: request.guarded ?? expectedVersion !== undefined,
      ref: calls.refOf(type, target),
    },
    signal,
  );
}

/** Like {@link sendWrite}, but also reports an optimistic conflict to the scope. */
export async function writeObject<T>(
  calls: ScopedCalls,
  type: ResourceType,
  request: WriteRequest,
  signal: AbortSignal | undefined,
): Promise<T> {
  try {
    return (await sendWrite(calls, type, request, signal)) as T;
  } catch (error) {
    const { expectedVersion, target, subresource } = request;
    const { name } = target;
    if (expectedVersion !== undefined && name !== undefined && isOptimisticConflict(error)) {
      const ref = { ...calls.refOf(type, target), name };
      calls.scope.onConflict?.(
        conflictRecord({ ref, ...defined({ subresource }), readVersion: expectedVersion }),
      );
    }
    throw error;
  }
}

export async function deleteObject(
  calls: ScopedCalls,
  type: ResourceType,
  target: NamespacedName,
  options: DeleteOptions,
): Promise<void> {
  const { uid, resourceVersion, gracePeriodSeconds, signal } = options;
  // The server's default for Jobs and ReplicationControllers leaves their Pods running.
  const { propagationPolicy = "Background" } = options;
  const preconditions = defined({ uid, resourceVersion });
  const body = {
    apiVersion: "v1",
    kind: "DeleteOptions",
    ...(Object.keys(preconditions).length === 0 ? {} : { preconditions }),
    propagationPolicy,
    ...defined({ gracePeriodSeconds }),
  };
  await calls.send(
    {
      verb: "delete",
      method: "DELETE",
      path: objectPath(type, target),
      contentType: "application/json",
      body: JSON.stringify(body),
      ref: calls.refOf(type, target),
    },
    signal,
  );
}
