import {
  defined,
  isJsonObject,
  KonvergeError,
  parseApiVersion,
  type Gate,
  type ResourceType,
} from "@konverge/core";
import type { CallScope } from "../contract/call-record.ts";
import { createDiscovery, type Discovery, type FetchResources } from "./discovery.ts";
import type { KubeClient } from "../contract/kube-client.ts";
import type { KubeCredentials } from "../credentials/kube-credentials.ts";
import { listAll } from "./list-all.ts";
import { mutateObject } from "../mutate/mutate.ts";
import { createResourceCaller, joinSignals } from "./resource-caller.ts";
import { groupVersionPath } from "../names/resource-path.ts";
import { makeIsSensitive, type IsSensitive } from "../names/sensitive-kinds.ts";
import { createTransport, type Transport } from "../wire/transport.ts";
import { prepareApply, prepareCreate, preparePatch, prepareReplace } from "./write-request.ts";

export interface KubeClientOptions {
  readonly credentials: KubeCredentials;
  /** Asked before each call. */
  readonly gate: Gate;
  /** `User-Agent`; what stands before the first `/` is the field manager of writes that name none. */
  readonly userAgent: string;
  /** Default field manager. Two programs that share one delete each other's applied fields. */
  readonly fieldManager?: string;
  /** Calls at once, watches not counted. Default 64. Too few make calls wait; too many queue up inside the API server. */
  readonly maxConnections?: number;
  /** Longest time from sending a call to its last byte. Default 35 s, just above the API server's own limit for writes (34 s). */
  readonly requestTimeoutMs?: number;
  /** Resources as `plural.group`, beside Secrets, whose content must never reach records, logs or error texts (P12). */
  readonly sensitiveResources?: readonly string[];
  readonly random?: () => number;
}

/** @throws KonvergeError `invalid_config` for an option out of range */
export function createKubeClient(options: KubeClientOptions): KubeClient {
  const { credentials, gate, userAgent, maxConnections = 64, requestTimeoutMs = 35_000 } = options;
  checkOptions({ userAgent, maxConnections, requestTimeoutMs });
  const shared: Shared = {
    server: credentials.server,
    transport: createTransport({ credentials, gate, userAgent, maxConnections, requestTimeoutMs }),
    discovery: createDiscovery(),
    isSensitive: makeIsSensitive(options.sensitiveResources),
    userAgent,
    random: options.random ?? Math.random,
  };
  return bindClient(
    shared,
    options.fieldManager === undefined ? {} : { fieldManager: options.fieldManager },
  );
}

interface Shared {
  readonly server: string;
  readonly transport: Transport;
  readonly discovery: Discovery;
  readonly isSensitive: IsSensitive;
  readonly userAgent: string;
  readonly random: () => number;
}

function bindClient(shared: Shared, scope: CallScope): KubeClient {
  const { server, transport, discovery, isSensitive } = shared;
  const caller = createResourceCaller({ ...shared, scope });
  const fetchResources: FetchResources = (apiVersion) => {
    const { group, version } = parseApiVersion(apiVersion);
    return caller.getPath(groupVersionPath(group, version));
  };

  return {
    server,
    get: (type, target, { resourceVersion, subresource, signal } = {}) =>
      caller.read(type, target, { resourceVersion, subresource, signal }),
    list: (type, options = {}) => listAll((page) => caller.listPage(type, page), options),
    listPage: (type, options = {}) => caller.listPage(type, options),
    create: (type, object, { signal } = {}) =>
      caller.write(type, prepareCreate(type, object), signal),
    replace: (type, object, options = {}) =>
      caller.write(type, prepareReplace(type, object, options), options.signal),
    patch: (type, target, patch, options = {}) =>
      caller.write(type, preparePatch(type, target, { patch, options }), options.signal),
    apply: (type, object, options = {}) =>
      caller.write(type, prepareApply(type, object, options), options.signal),
    delete: (type, target, options = {}) => caller.delete(type, target, options),
    mutate: async (type, target, change, options = {}) => {
      const { subresource, signal, uid } = options;
      return mutateObject(
        {
          ref: { ...typeOf(type), ...target, ...defined({ uid }) },
          sensitive: isSensitive(type),
          signal: joinSignals(scope.signal, signal),
          onConflict: scope.onConflict,
          random: shared.random,
          // A status is read with its object; a scale is an object of its own.
          read: (resourceVersion) =>
            caller.read(type, target, {
              resourceVersion,
              subresource: subresource === "scale" ? subresource : undefined,
              signal,
            }),
          write: (patch) => {
            const through = subresource === undefined ? {} : { subresource };
            const request = preparePatch(type, target, { patch, options: through });
            return caller.send(type, request, signal);
          },
        },
        change,
        options,
      );
    },
    watch: (type, options = {}) => caller.watch(type, options),
    raw: (request) => caller.raw(request),
    discover: async (apiVersion) => discovery.discover(apiVersion, fetchResources),
    resolveType: async (apiVersion, kind) =>
      discovery.resolveType(apiVersion, kind, fetchResources),
    async serverVersion() {
      const version = await caller.getPath("/version");
      const text = (field: string): string => {
        const value = isJsonObject(version) ? version[field] : undefined;
        return typeof value === "string" ? value : "";
      };
      return {
        gitVersion: text("gitVersion"),
        major: text("major"),
        minor: text("minor"),
        platform: text("platform"),
      };
    },
    isSensitive,
    scoped: (inner) => {
      const signal = joinSignals(scope.signal, inner.signal);
      return bindClient(shared, {
        ...scope,
        ...inner,
        ...defined({ signal }),
      });
    },
    close: () => transport.close(),
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
      : `userAgent "${userAgent}" must be printable ASCII`,
    Number.isInteger(maxConnections) && maxConnections >= 1
      ? ""
      : `maxConnections ${maxConnections} must be a whole number from 1`,
    requestTimeoutMs > 0 && requestTimeoutMs < 2 ** 31
      ? ""
      : `requestTimeoutMs ${requestTimeoutMs} must be above 0 and below 2^31`,
  ].filter((problem) => problem !== "");
  if (problems.length > 0) throw new KonvergeError("invalid_config", problems.join("; "));
}

function typeOf({
  group,
  version,
  kind,
  resource,
}: ResourceType): Pick<ResourceType, "group" | "version" | "kind" | "resource"> {
  return { group, version, kind, resource };
}
