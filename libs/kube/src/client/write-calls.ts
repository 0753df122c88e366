import { defined, type ApiObject, type JsonObject, type ResourceType } from "@konverge/core";
import type { ConflictRecord } from "../contract/call-record.ts";
import type { DeleteCollectionCall, DeleteOptions } from "../contract/kube-client.ts";
import { isOptimisticConflict } from "../errors/error-predicates.ts";
import { findCompetingWriters } from "../mutate/competing-writers.ts";
import { conflictRecord } from "../mutate/conflict-record.ts";
import { query } from "../names/query-string.ts";
import { collectionPath, objectPath, type NamespacedName } from "../names/resource-path.ts";
import { toPage } from "./object-page.ts";
import { getObject } from "./read-calls.ts";
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
  const fieldManager = calls.fieldManagerFor(verb);
  const { dryRun } = calls;
  return calls.json(
    {
      verb,
      method,
      path: path + query({ fieldManager, fieldValidation, force, dryRun }),
      contentType,
      body: bodyText(request),
      subresource,
      guarded: request.guarded ?? expectedVersion !== undefined,
      ref: calls.refOf(type, target),
    },
    signal,
  );
}

interface WriteContext {
  readonly signal: AbortSignal | undefined;
  /** The object that the write is based on, to find the writers since then. */
  readonly read?: ApiObject | undefined;
}

/** Like {@link sendWrite}, but also reports an optimistic conflict to the scope. */
export async function writeObject<T>(
  calls: ScopedCalls,
  type: ResourceType,
  request: WriteRequest,
  { signal, read }: WriteContext,
): Promise<T> {
  try {
    return (await sendWrite(calls, type, request, signal)) as T;
  } catch (error) {
    const { expectedVersion, target, subresource } = request;
    const { name } = target;
    const { onConflict } = calls.scope;
    if (
      onConflict !== undefined &&
      expectedVersion !== undefined &&
      name !== undefined &&
      isOptimisticConflict(error)
    ) {
      const ref = { ...calls.refOf(type, target), name };
      const atMs = Date.now();
      const found =
        read === undefined
          ? {}
          : await findWriters(calls, type, { name, ...defined(target) }, { signal, read });
      onConflict(
        conflictRecord({
          ref,
          atMs,
          ...defined({ subresource }),
          readVersion: expectedVersion,
          ...found,
        }),
      );
    }
    throw error;
  }
}

/** The writers since the read. A failed read leaves the conflict without them. */
async function findWriters(
  calls: ScopedCalls,
  type: ResourceType,
  target: NamespacedName,
  { signal, read }: { readonly signal: AbortSignal | undefined; readonly read: ApiObject },
): Promise<Partial<ConflictRecord>> {
  const found = await getObject<JsonObject>(calls, type, target, { signal }).catch(() => undefined);
  if (found === undefined) return {};
  const { resourceVersion: foundVersion, uid } = (found as unknown as ApiObject).metadata;
  if (uid !== read.metadata.uid) return {};
  const sensitive = calls.shared.isSensitive(type);
  const before = read as unknown as JsonObject;
  return {
    competingWriters: findCompetingWriters(before, found, { sensitive }),
    ...defined({ foundVersion }),
  };
}

export async function deleteObject(
  calls: ScopedCalls,
  type: ResourceType,
  target: NamespacedName,
  options: DeleteOptions,
): Promise<void> {
  const { uid, resourceVersion, signal } = options;
  await calls.send(
    {
      verb: "delete",
      method: "DELETE",
      path: objectPath(type, target),
      contentType: "application/json",
      body: deleteBody(calls, options, defined({ uid, resourceVersion })),
      ref: calls.refOf(type, target),
    },
    signal,
  );
}

/** Deletes all objects that match, and returns them. */
export async function deleteCollection<T extends ApiObject>(
  calls: ScopedCalls,
  type: ResourceType<T>,
  options: DeleteCollectionCall,
): Promise<T[]> {
  const { namespace, labelSelector, fieldSelector, signal } = options;
  const path = collectionPath(type, namespace) + query({ labelSelector, fieldSelector });
  const call = {
    verb: "delete",
    method: "DELETE",
    path,
    contentType: "application/json",
    body: deleteBody(calls, options, {}),
    ref: calls.refOf(type, { namespace }),
  } as const;
  return toPage<T>(await calls.json(call, signal), type).items;
}

function deleteBody(
  { dryRun }: ScopedCalls,
  { propagationPolicy = "Background", gracePeriodSeconds }: DeleteOptions,
  preconditions: JsonObject,
): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "DeleteOptions",
    ...(Object.keys(preconditions).length === 0 ? {} : { preconditions }),
    // The server's default for Jobs and ReplicationControllers leaves their Pods running.
    propagationPolicy,
    ...defined({ gracePeriodSeconds }),
    // With a body, the server ignores the options in the query.
    ...(dryRun === undefined ? {} : { dryRun: [dryRun] }),
  });
}
