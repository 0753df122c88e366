import {
  defined,
  formatApiVersion,
  KonvergeError,
  parseApiVersion,
  type Gate,
  type ResourceType,
} from "@konverge/core";
import type { CallScope } from "../contract/call-record.ts";
import type { KubeClient, MutateOptions, ServerVersion } from "../contract/kube-client.ts";
import type { KubeCredentials } from "../credentials/kube-credentials.ts";
import { mutateObject, type MutateAccess } from "../mutate/mutate.ts";
import { throughSubresource } from "../mutate/served-status.ts";
import { groupVersionPath, type NamespacedName } from "../names/resource-path.ts";
import { makeIsSensitive } from "../names/sensitive-kinds.ts";
import { createPageSizes } from "../wire/page-sizes.ts";
import type { CallDispatcher } from "../wire/connection-pool.ts";
import { Transport } from "../wire/transport.ts";
import { createClientNodeApi } from "../interop/client-node-api.ts";
import { createLostWrites } from "../mutate/lost-writes.ts";
import type { FetchResources } from "../contract/discovery.ts";
import { createDiscovery } from "./discovery.ts";
import { forwardCall } from "./forward-call.ts";
import { listAll } from "./list-all.ts";
import { sendRaw } from "./raw-call.ts";
import { getObject, listPage, watchObjects } from "./read-calls.ts";
import { joinSignals, ScopedCalls, type SharedClient } from "./scoped-calls.ts";
import { deleteCollection, deleteObject, sendWrite, writeObject } from "./write-calls.ts";
import { prepareApply, prepareCreate, preparePatch, prepareReplace } from "./write-request.ts";

export interface KubeClientOptions {
  readonly credentials: KubeCredentials;
  /** Consulted before each call. */
  readonly gate: Gate;
  /** `User-Agent`. The part before the first `/` is the field manager of writes without one. */
  readonly userAgent: string;
  /** Default field manager. Two programs that share one delete each other's applied fields. */
  readonly fieldManager?: string;
  /**
   * Maximum number of concurrent calls, without watches. Default 64. Too few delay calls; too many overload the API
   * server's queues.
   */
  readonly maxConnections?: number;
  /**
   * Longest time from sending a call to its last byte. Default 35 s, just above the API server's own limit for writes
   * (34 s).
   */
  readonly requestTimeoutMs?: number;
  /**
   * Resources as `plural.group`, in addition to Secrets, whose content must never reach records, logs or error texts
   * (P12).
   */
  readonly sensitiveResources?: readonly string[];
  /** Rejects each call that is neither a read nor a dry run with `not_plannable`. Default false. */
  readonly isDryRunOnly?: boolean | undefined;
  readonly random?: () => number;
  /** Serves the calls inside this process, for simulations. Default: connections to the server of the credentials. */
  readonly dispatcher?: CallDispatcher;
}

/** @throws KonvergeError `invalid_config` if an option is out of range */
export function createKubeClient(options: KubeClientOptions): KubeClient {
  const { credentials, gate, userAgent, maxConnections = 64, requestTimeoutMs = 35_000 } = options;
  const { dispatcher, isDryRunOnly } = options;
  checkOptions({ userAgent, maxConnections, requestTimeoutMs });
  const shared: SharedClient = {
    server: credentials.server,
    transport: new Transport({
      credentials,
      gate,
      userAgent,
      maxConnections,
      requestTimeoutMs,
      dispatcher,
      isDryRunOnly,
    }),
    discovery: createDiscovery(),
    pageSizes: createPageSizes(),
    isSensitive: makeIsSensitive(options.sensitiveResources),
    userAgent,
    random: options.random ?? Math.random,
  };
  return bindClient(shared, defined({ fieldManager: options.fieldManager }));
}

function bindClient(shared: SharedClient, scope: CallScope): KubeClient {
  const { server, transport, isSensitive } = shared;
  const calls = new ScopedCalls(shared, scope);
  const { discovery } = calls;
  const fetchResources = resourcesFrom(calls);
  const lostWrites = createLostWrites(isSensitive);
  const forward: KubeClient["forward"] = (request) => forwardCall(calls, request, lostWrites);

  return {
    server,
    get: (type, target, options = {}) => getObject(calls, type, target, options),
    list: (type, options = {}) => listAll((page) => listPage(calls, type, page), options),
    listPage: (type, options = {}) => listPage(calls, type, options),
    create: (type, object, { signal } = {}) =>
      writeObject(calls, type, prepareCreate(type, object), { signal }),
    replace: (type, object, options = {}) =>
      writeObject(calls, type, prepareReplace(type, object, options), { signal: options.signal }),
    patch: (type, target, patch, options = {}) =>
      writeObject(calls, type, preparePatch(type, target, { patch, options }), {
        signal: options.signal,
        read: options.read,
      }),
    apply: (type, object, options = {}) =>
      writeObject(calls, type, prepareApply(type, object, options), { signal: options.signal }),
    delete: (type, target, options = {}) => deleteObject(calls, type, target, options),
    deleteCollection: (type, options = {}) => deleteCollection(calls, type, options),
    mutate: async (type, target, change, options = {}) =>
      mutateObject(mutateAccess(calls, type, target, options), change, options),
    watch: (type, options = {}) => watchObjects(calls, type, options),
    raw: (request) => sendRaw(calls, request),
    forward,
    api: (type) => createClientNodeApi(type, forward),
    discover: async (apiVersion) => discovery.discover(apiVersion, fetchResources),
    resolveType: async (apiVersion, kind) =>
      discovery.resolveType(apiVersion, kind, fetchResources),
    serverVersion: () => readServerVersion(calls),
    isSensitive,
    scoped: (inner) => {
      const signal = joinSignals(scope.signal, inner.signal);
      return bindClient(shared, { ...scope, ...inner, ...defined({ signal }) });
    },
    close: () => transport.close(),
  };
}

function resourcesFrom(calls: ScopedCalls): FetchResources {
  return (apiVersion) => {
    const { group, version } = parseApiVersion(apiVersion);
    return calls.json({ verb: "get", method: "GET", path: groupVersionPath(group, version) });
  };
}

function mutateAccess(
  calls: ScopedCalls,
  type: ResourceType,
  target: NamespacedName,
  { subresource, signal, uid }: MutateOptions,
): MutateAccess {
  const { shared, scope } = calls;
  const { group, version, kind, resource } = type;
  // A status is part of its object; a scale is an object of its own.
  const readFrom = subresource === "scale" ? subresource : undefined;
  const ref = { group, version, kind, resource, ...target, ...defined({ uid }) };
  const serves = async (name: string): Promise<boolean> => {
    const apiVersion = formatApiVersion(group, version);
    const fetch = resourcesFrom(calls);
    const { subresources } = await calls.discovery.resolveType(apiVersion, kind, fetch);
    return subresources.includes(name);
  };
  const through = <T>(used: string | undefined, call: () => Promise<T>): Promise<T> =>
    used === undefined ? call() : throughSubresource(ref, used, { serves, call });
  return {
    ref,
    sensitive: shared.isSensitive(type),
    signal: joinSignals(scope.signal, signal),
    onConflict: scope.onConflict,
    random: shared.random,
    serves,
    read: (resourceVersion) =>
      through(readFrom, () =>
        getObject(calls, type, target, { resourceVersion, subresource: readFrom, signal }),
      ),
    write: (patch) =>
      through(subresource, () => {
        const options = defined({ subresource });
        const request = preparePatch(type, target, { patch, options });
        return sendWrite(calls, type, { ...request, guarded: true }, signal);
      }),
  };
}

async function readServerVersion(calls: ScopedCalls): Promise<ServerVersion> {
  const version = await calls.json({ verb: "get", method: "GET", path: "/version" });
  const text = (field: keyof ServerVersion): string => {
    const value = version[field];
    return typeof value === "string" ? value : "";
  };
  return {
    gitVersion: text("gitVersion"),
    major: text("major"),
    minor: text("minor"),
    platform: text("platform"),
  };
}

function checkOptions({
  userAgent,
  maxConnections,
  requestTimeoutMs,
}: {
  readonly userAgent: string;
  readonly maxConnections: number;
  readonly requestTimeoutMs: number;
}): void {
  const problems = [
    /^[\x21-\x7e][\x20-\x7e]*$/.test(userAgent)
      ? ""
      : `userAgent must be printable ASCII (got "${userAgent}")`,
    Number.isInteger(maxConnections) && maxConnections >= 1
      ? ""
      : `maxConnections must be an integer >= 1 (got ${maxConnections})`,
    requestTimeoutMs > 0 && requestTimeoutMs < 2 ** 31
      ? ""
      : `requestTimeoutMs must be > 0 and < 2^31 (got ${requestTimeoutMs})`,
  ].filter((problem) => problem !== "");
  if (problems.length > 0) throw new KonvergeError("invalid_config", problems.join("; "));
}
