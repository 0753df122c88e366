import {
  defined,
  isJsonObject,
  KonvergeError,
  type ApiObject,
  type JsonObject,
  type JsonValue,
  type ResourceType,
} from "@konverge/core";
import type { ApiCall } from "../contract/api-call.ts";
import type { CallScope } from "../contract/call-record.ts";
import type { Discovery } from "./discovery.ts";
import {
  isKubeApiError,
  isNotFound,
  isOptimisticConflict,
  type ErrorRef,
} from "../errors/kube-api-error.ts";
import type {
  DeleteOptions,
  ListPageOptions,
  ObjectPage,
  RawResponse,
  RawRequest,
} from "../contract/kube-client.ts";
import { toPage } from "./object-page.ts";
import { query } from "../names/query-string.ts";
import { rawVerb } from "./raw-verb.ts";
import {
  collectionPath,
  objectPath,
  parsePath,
  type NamespacedName,
} from "../names/resource-path.ts";
import type { IsSensitive } from "../names/sensitive-kinds.ts";
import type { ApiAnswer, Transport } from "../wire/transport.ts";
import type { WatchEvent, WatchOptions } from "../contract/watch-event.ts";
import { readWatch, SILENCE_MARGIN_MS } from "../wire/watch.ts";
import { bodyText, type WriteRequest } from "./write-request.ts";

interface ReadOptions {
  readonly resourceVersion?: string | undefined;
  readonly subresource?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The calls of one scope, as objects instead of bytes. */
export interface ResourceCaller {
  /** An absolute path that names no resource. */
  getPath(path: string): Promise<JsonValue>;
  read<T>(type: ResourceType, target: NamespacedName, options: ReadOptions): Promise<T>;
  listPage<T>(type: ResourceType, options: ListPageOptions): Promise<ObjectPage<T>>;
  send(
    type: ResourceType,
    request: WriteRequest,
    signal: AbortSignal | undefined,
  ): Promise<JsonObject>;
  /** As `send`, and a lost race is told to the scope. */
  write<T>(type: ResourceType, request: WriteRequest, signal: AbortSignal | undefined): Promise<T>;
  delete(type: ResourceType, target: NamespacedName, options: DeleteOptions): Promise<void>;
  watch<T extends ApiObject>(
    type: ResourceType,
    options: WatchOptions,
  ): AsyncIterable<WatchEvent<T>>;
  raw(request: RawRequest): Promise<RawResponse>;
}

export interface ResourceCallerOptions {
  readonly transport: Transport;
  readonly discovery: Discovery;
  readonly isSensitive: IsSensitive;
  readonly userAgent: string;
  readonly scope: CallScope;
}

const PAGE = 500;

export function createResourceCaller(options: ResourceCallerOptions): ResourceCaller {
  const { transport, discovery, isSensitive, userAgent, scope } = options;
  const product = userAgent.split(/[/ ]/, 1)[0];

  /** What every call of this scope has, and what its answer may teach. */
  const call = async (
    parts: Pick<ApiCall, "verb" | "method" | "path"> & Partial<ApiCall>,
    signal: AbortSignal | undefined,
  ): Promise<ApiAnswer> => {
    try {
      return await transport.send({
        scope,
        signal: joinSignals(scope.signal, signal),
        sensitive: parts.ref !== undefined && isSensitive(parts.ref),
        ...parts,
      });
    } catch (error) {
      const { ref } = parts;
      if (ref !== undefined && isUnknownResource(error)) discovery.forget(ref.group, ref.version);
      throw error;
    }
  };
  /** Asked with the type itself, which may say that it is sensitive; the reference of a call does not. */
  const about = (type: ResourceType, target: Parameters<typeof refOf>[1]): ErrorRef => {
    isSensitive(type);
    return refOf(type, target);
  };
  const json = async (...args: Parameters<typeof call>): Promise<JsonObject> =>
    asObject(await call(...args), args[0].path);

  const caller: ResourceCaller = {
    async getPath(path) {
      return json({ verb: "get", method: "GET", path }, undefined);
    },
    async read<T>(
      type: ResourceType,
      target: NamespacedName,
      { resourceVersion, subresource, signal }: ReadOptions,
    ) {
      const path = objectPath(type, target, subresource) + query({ resourceVersion });
      return (await json(
        { verb: "get", method: "GET", path, subresource, ref: about(type, target) },
        signal,
      )) as T;
    },
    async listPage<T>(type: ResourceType, listOptions: ListPageOptions) {
      const {
        namespace,
        labelSelector,
        fieldSelector,
        limit = PAGE,
        continueToken,
        signal,
      } = listOptions;
      const path =
        collectionPath(type, namespace) +
        query({
          labelSelector,
          fieldSelector,
          limit: limit === 0 ? undefined : limit,
          continue: continueToken,
          resourceVersion: listOptions.resourceVersion,
        });
      const list = await json(
        { verb: "list", method: "GET", path, ref: about(type, { namespace }) },
        signal,
      );
      return toPage<T>(list, type);
    },
    async send(type, request, signal) {
      const { verb, method, path, contentType, target, subresource, force } = request;
      const fieldManager = scope.fieldManager ?? (verb === "apply" ? product : undefined);
      return json(
        {
          verb,
          method,
          path: path + query({ fieldManager, force }),
          contentType,
          body: bodyText(request),
          subresource,
          ref: about(type, target),
        },
        signal,
      );
    },
    async write<T>(type: ResourceType, request: WriteRequest, signal: AbortSignal | undefined) {
      try {
        return (await caller.send(type, request, signal)) as T;
      } catch (error) {
        const { expectedVersion, target, subresource } = request;
        if (
          expectedVersion !== undefined &&
          target.name !== undefined &&
          isOptimisticConflict(error)
        ) {
          scope.onConflict?.({
            ref: { ...refOf(type, target), name: target.name },
            ...defined({ subresource }),
            atMs: Date.now(),
            try: 1,
            readVersion: expectedVersion,
            competingWriters: [],
            isThrown: true,
            waitedMs: 0,
          });
        }
        throw error;
      }
    },
    async delete(
      type,
      target,
      { uid, resourceVersion, propagationPolicy, gracePeriodSeconds, signal },
    ) {
      const preconditions = {
        ...defined({ uid, resourceVersion }),
      };
      const body = {
        apiVersion: "v1",
        kind: "DeleteOptions",
        ...(Object.keys(preconditions).length === 0 ? {} : { preconditions }),
        ...defined({ propagationPolicy, gracePeriodSeconds }),
      };
      await call(
        {
          verb: "delete",
          method: "DELETE",
          path: objectPath(type, target),
          contentType: "application/json",
          body: JSON.stringify(body),
          ref: about(type, target),
        },
        signal,
      );
    },
    async *watch<T extends ApiObject>(type: ResourceType, watchOptions: WatchOptions) {
      const { namespace, labelSelector, fieldSelector, resourceVersion, signal } = watchOptions;
      const timeoutSeconds = watchOptions.timeoutSeconds ?? 300 + Math.floor(Math.random() * 300);
      const ref = refOf(type, { namespace });
      const sensitive = isSensitive(type);
      const path =
        collectionPath(type, namespace) +
        query({
          watch: 1,
          allowWatchBookmarks: true,
          timeoutSeconds,
          labelSelector,
          fieldSelector,
          resourceVersion,
        });
      const chunks = await transport
        .stream(
          {
            verb: "watch",
            method: "GET",
            path,
            ref,
            scope,
            sensitive,
            signal: joinSignals(scope.signal, signal),
          },
          watchOptions.silentMs ?? timeoutSeconds * 1_000 + SILENCE_MARGIN_MS,
        )
        .catch((error: unknown) => {
          if (isUnknownResource(error)) discovery.forget(ref.group, ref.version);
          throw error;
        });
      yield* readWatch<T>(chunks, { type, ref, sensitive });
    },
    async raw({
      method,
      path,
      query: parameters = {},
      body,
      contentType = "application/json",
      signal,
    }) {
      const place = parsePath(path);
      const { subresource, ...ref } = place ?? {};
      const verb = rawVerb(method, place, contentType);
      if (verb === "get" && String(parameters["watch"] ?? "") !== "") {
        throw new KonvergeError(
          "invalid_request",
          "query.watch: raw() cannot stream; use watch() or a reflector",
        );
      }
      const answer = await call(
        {
          verb,
          method,
          path: path + query(parameters),
          ...(body === undefined ? {} : { body: JSON.stringify(body), contentType }),
          subresource,
          ...(place === undefined ? {} : { ref: ref as ErrorRef }),
        },
        signal,
      );
      return { status: answer.status, body: answer.value ?? answer.text, headers: answer.headers };
    },
  };
  return caller;
}

/** Both signals in one; the common cases cost nothing. */
export function joinSignals(
  left: AbortSignal | undefined,
  right: AbortSignal | undefined,
): AbortSignal | undefined {
  if (left === undefined || left === right) return right;
  return right === undefined ? left : AbortSignal.any([left, right]);
}

function refOf(
  type: ResourceType,
  target: { readonly namespace?: string | undefined; readonly name?: string | undefined },
): ErrorRef {
  const { group, version, kind, resource } = type;
  const { namespace, name } = target;
  return {
    group,
    version,
    kind,
    resource,
    ...defined({ namespace, name }),
  };
}

/** "No such object" names it; "no such resource" names nothing, or is a plain 404. */
function isUnknownResource(error: unknown): boolean {
  return isNotFound(error) && isKubeApiError(error) && error.details["name"] === undefined;
}

function asObject({ value, status }: ApiAnswer, path: string): JsonObject {
  if (isJsonObject(value)) return value;
  const [place] = path.split("?", 1);
  throw new KonvergeError(
    "kube_unreachable",
    `${place ?? ""} answered ${status} without a JSON object; is this an API server?`,
  );
}
