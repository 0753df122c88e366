import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { defined, KonvergeError, type JsonObject } from "@konverge/core";
import { runControllers } from "../controllers/run-controllers.ts";
import { KindRegistry } from "../kinds/kind-registry.ts";
import { AuditLog } from "../serve/audit-log.ts";
import { FaultRules, type Fault } from "../serve/fault-rules.ts";
import { makeFlowIds } from "../serve/http-answer.ts";
import { OpenWatches } from "../serve/open-watches.ts";
import type { Handling } from "../serve/handling.ts";
import { handleRequest } from "../serve/request-handler.ts";
import { ChangeLog } from "../storage/change-log.ts";
import { ObjectStore } from "../storage/object-store.ts";
import { runCrdLifecycle } from "./crd-lifecycle.ts";
import { makeFirstObjects } from "./first-objects.ts";
import { formatKubeconfig } from "./kubeconfig.ts";

/** Default version of `/version`: the Kubernetes version that the embedded server is compared with. */
const VERSION = "v1.36.3";

export interface ApiServerOptions {
  /** Default `127.0.0.1`. There is no authentication: on any other address every caller has full access. */
  readonly host?: string;
  /** Default 0: a free port. */
  readonly port?: number;
  /** Data directory that keeps the objects over a restart and a `kill -9`. Default: in memory. */
  readonly dataDir?: string;
  /** File for one `audit.k8s.io/v1` Event per finished request, as a JSON line. Default: none. */
  readonly auditLog?: string;
  /** Version of `/version`. Default `v1.36.3`. */
  readonly version?: string;
  /** Changes per resource that watches can resume from. Default 10,000; with too few, watches expire. */
  readonly historyLimit?: number;
  /** How long a read waits for a version that does not exist yet, in ms. Default 3,000, as in the real server. */
  readonly freshnessLimitMs?: number;
  /**
   * Deletes dependents whose owners are deleted, removes deleted Pods, and keeps the status of PodDisruptionBudgets. Default
   * false: as kube-apiserver without its controller manager.
   */
  readonly controllers?: boolean;
  /** Time between bookmarks of a watch, in ms. Default 60,000. */
  readonly bookmarkEveryMs?: number;
  /**
   * Selects the requests that a fault matches, from 0 to below 1. Default `Math.random`; a seeded one makes a run
   * repeatable.
   */
  readonly random?: () => number;
}

export interface EmbeddedApiServer extends AsyncDisposable {
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  /** A kubeconfig in YAML. */
  readonly kubeconfig: string;
  readonly version: string;
  /** The store's newest revision. */
  readonly resourceVersion: string;
  /** Number of open watches. */
  readonly watches: number;
  /** Returns all stored objects of a resource (`plural.group`) without a request. */
  objects(resource: string): readonly JsonObject[];
  /** Adds a fault; requests get the first that matches. Returns a function that removes it. */
  inject(fault: Fault): () => void;
  clearFaults(): void;
  /** Drops the history: older watches and page tokens get 410 Expired. */
  compact(): void;
  /** Ends open watches like a timeout; `resource` is `plural.group`, default all. Returns their number. */
  cutWatches(resource?: string): number;
  /** Sends a bookmark to the watches that allow them; `resource` is `plural.group`, default all. */
  sendBookmarks(resource?: string): void;
  /** Ends all connections and stops listening. */
  close(): Promise<void>;
}

/**
 * Starts a Kubernetes API server inside this process: real HTTP, resourceVersions, watches, patches, server-side apply
 * and CustomResourceDefinitions. It is meant for trials and tests: it has no authentication, no admission webhooks, no
 * CEL, and no controllers besides those of CustomResourceDefinitions and of `controllers`. A number written as 2.0 is read as 2.
 * @throws KonvergeError `invalid_config` if it cannot listen or its files cannot be used
 */
export async function createApiServer(options: ApiServerOptions = {}): Promise<EmbeddedApiServer> {
  const { host = "127.0.0.1", port = 0, dataDir, historyLimit } = options;
  const changeLog = dataDir === undefined ? undefined : new ChangeLog(dataDir);
  const store = new ObjectStore(defined({ changeLog, historyLimit }));
  makeFirstObjects(store);
  const handling = makeHandling(store, options);
  const stopLifecycle = runCrdLifecycle(store);
  const stopControllers =
    options.controllers === true ? runControllers(handling.state) : () => undefined;
  const stopReconciling = () => {
    stopControllers();
    stopLifecycle();
  };
  const server = createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
    void handleRequest(handling, request, response);
  });
  const closeFiles = () => {
    handling.auditLog?.close();
    changeLog?.close();
  };
  const stop = async () => {
    stopReconciling();
    await closeServer(server);
    closeFiles();
  };
  try {
    await listen(server, port, host);
  } catch (error) {
    stopReconciling();
    closeFiles();
    throw error;
  }
  const url = urlOf(server.address() as AddressInfo);
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= stop());
  return {
    url,
    kubeconfig: formatKubeconfig(url),
    version: handling.version,
    get resourceVersion() {
      return String(store.version);
    },
    get watches() {
      return handling.watches.size;
    },
    objects: (resource) =>
      store
        .table(resource)
        .list()
        .map(({ object }) => object),
    inject: (fault) => handling.faults.inject(fault),
    clearFaults: () => handling.faults.clear(),
    compact: () => store.compact(),
    cutWatches: (resource) => handling.watches.cut(resource),
    sendBookmarks: (resource) => handling.watches.bookmark(resource),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function makeHandling(store: ObjectStore, options: ApiServerOptions): Handling {
  const { freshnessLimitMs = 3_000, bookmarkEveryMs = 60_000, auditLog } = options;
  const definitions = store.table("customresourcedefinitions.apiextensions.k8s.io");
  const kinds = new KindRegistry(definitions);
  return {
    state: { store, kinds, now: Date.now, freshnessLimitMs, bookmarkEveryMs },
    faults: new FaultRules(options.random ?? Math.random),
    watches: new OpenWatches(),
    auditLog: auditLog === undefined ? undefined : new AuditLog(auditLog),
    flowIds: makeFlowIds(),
    version: options.version ?? VERSION,
  };
}

async function listen(server: Server, port: number, host: string): Promise<void> {
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (cause) {
    throw new KonvergeError(
      "invalid_config",
      `the embedded API server cannot listen on ${host}:${port} (${(cause as Error).message}): give a free port, or 0`,
      { cause },
    );
  }
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}

function urlOf({ address, port, family }: AddressInfo): string {
  return `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}
