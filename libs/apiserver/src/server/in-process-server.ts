import type { IncomingMessage, ServerResponse } from "node:http";
import { resourceId, type JsonObject } from "@konverge/core";
import { runControllers } from "../controllers/run-controllers.ts";
import { StatusError } from "../errors/status-error.ts";
import { KindRegistry } from "../kinds/kind-registry.ts";
import { resolve, runCall } from "../serve/dispatch.ts";
import { answerOther } from "../serve/other-paths.ts";
import { parsePath, verbOf } from "../serve/request-path.ts";
import { ObjectStore } from "../storage/object-store.ts";
import type { Call, ServerState } from "../verbs/call.ts";
import { readWatchRequest, startWatch } from "../verbs/watch.ts";
import { runCrdLifecycle } from "./crd-lifecycle.ts";
import { makeFirstObjects } from "./first-objects.ts";

const VERSION = "v1.36.3";
/** The simulated connections of a watch never break by silence, so that few bookmarks suffice. */
const BOOKMARK_EVERY_MS = 600_000;

/** A request without a connection. */
export interface InProcessRequest {
  readonly method: string;
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface InProcessAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The output of a watch: the lines of its response. */
interface InProcessWatch {
  readonly line: (text: string) => void;
  readonly end: () => void;
}

/** A change of a stored object. */
export interface StoreChange {
  /** `plural.group`. */
  readonly resource: string;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: JsonObject;
  readonly previous: JsonObject | undefined;
}

/** The embedded API server without HTTP: requests are calls, and timers are those of the caller. */
export interface InProcessServer {
  /** Serves a request that is no watch. */
  request(request: InProcessRequest): Promise<InProcessAnswer>;
  /** Opens a watch. Returns the function that ends it, or the error response. */
  watch(request: InProcessRequest, output: InProcessWatch): Promise<InProcessAnswer | (() => void)>;
  /** The newest revision of the store. */
  readonly version: number;
  /** All objects of a resource, `plural.group`. */
  objects(resource: string): readonly JsonObject[];
  /** The resources that have objects. */
  resources(): string[];
  /** An object as it was at a version; undefined if it did not exist or is not known. */
  objectAt(resource: string, key: string, version: number): JsonObject | undefined;
  /** Drops the history: older watches get 410 Expired. */
  compact(): void;
  onChange(listener: (change: StoreChange) => void): void;
}

export interface InProcessServerOptions {
  /** A server whose objects and kinds it starts with. Default: none but the namespaces. */
  readonly from?: InProcessServer;
  /** Plans the work of the garbage collector and the other controllers. Default: at once. */
  readonly collect?: (work: () => void) => void;
}

/** Starts a server without HTTP. */
export function createInProcessServer(options: InProcessServerOptions = {}): InProcessServer {
  return new CallServer(options);
}

class CallServer implements InProcessServer {
  readonly #store: ObjectStore;
  readonly #state: ServerState;

  constructor({ from, collect }: InProcessServerOptions) {
    const seed = from instanceof CallServer ? from : undefined;
    this.#store = new ObjectStore();
    if (seed === undefined) makeFirstObjects(this.#store);
    else this.#store.copy(seed.#store);
    const definitions = this.#store.table("customresourcedefinitions.apiextensions.k8s.io");
    this.#state = {
      store: this.#store,
      kinds: new KindRegistry(definitions, seed === undefined ? undefined : seed.#state.kinds),
      now: () => Date.now(),
      freshnessLimitMs: 3_000,
      bookmarkEveryMs: BOOKMARK_EVERY_MS,
    };
    runCrdLifecycle(this.#store);
    runControllers(this.#state, collect);
  }

  get version(): number {
    return this.#store.version;
  }

  objects(resource: string): readonly JsonObject[] {
    return this.#store
      .table(resource)
      .list()
      .map(({ object }) => object);
  }

  resources(): string[] {
    return [...this.#store.tables()].filter(({ size }) => size > 0).map(({ id }) => id);
  }

  objectAt(resource: string, key: string, version: number): JsonObject | undefined {
    const found = this.#store.table(resource).listAt(version, key);
    return found?.find((stored) => stored.key === key)?.object;
  }

  compact(): void {
    this.#store.compact();
  }

  onChange(listener: (change: StoreChange) => void): void {
    this.#store.onChange(({ id }, { type, current, previous }) =>
      listener({ resource: id, type, object: current.object, previous: previous?.object }),
    );
  }

  async request(request: InProcessRequest): Promise<InProcessAnswer> {
    const found = this.#resolve(request);
    if (!("call" in found)) return found;
    const { call, verb } = found;
    try {
      const { code, text } = await runCall(verb, call);
      return json(code, text);
    } catch (error) {
      return failed(error);
    }
  }

  async watch(
    request: InProcessRequest,
    output: InProcessWatch,
  ): Promise<InProcessAnswer | (() => void)> {
    const found = this.#resolve(request);
    if (!("call" in found)) return found;
    try {
      const send = (line: string) => {
        output.line(line);
        return true;
      };
      const running = startWatch(await readWatchRequest(found.call), { send, end: output.end });
      return running.cut;
    } catch (error) {
      return failed(error);
    }
  }

  #resolve(
    request: InProcessRequest,
  ): InProcessAnswer | { readonly verb: string; readonly call: Call } {
    const { method, path: uri, headers, body } = request;
    const mark = uri.indexOf("?");
    const path = parsePath(mark === -1 ? uri : uri.slice(0, mark));
    if (path.kind === "other") return answerDocument(this.#state, request, path.path);
    const query = new URLSearchParams(mark === -1 ? "" : uri.slice(mark + 1));
    const verb = verbOf(method, path.resource.name !== "", query);
    const resolved = resolve(this.#state, path.resource, {
      method,
      verb,
      query,
      userAgent: headers["user-agent"] ?? "",
      contentType: (headers["content-type"] ?? "").split(";")[0]?.trim() ?? "",
      accept: headers["accept"] ?? "",
    });
    if (resolved.kind === "unknown") return text(404, "404 page not found\n");
    if (resolved.kind === "refused") return failed(resolved.error);
    return { verb, call: { ...resolved.call, body } };
  }
}

const json = (status: number, body: string): InProcessAnswer => ({
  status,
  headers: { "content-type": "application/json" },
  body,
});

const text = (status: number, body: string): InProcessAnswer => ({
  status,
  headers: { "content-type": "text/plain; charset=utf-8" },
  body,
});

function failed(error: unknown): InProcessAnswer {
  if (!(error instanceof StatusError)) throw error;
  const answer = json(error.code, JSON.stringify(error.toStatus()));
  if (error.retryAfterSeconds <= 0) return answer;
  return {
    ...answer,
    headers: { ...answer.headers, "retry-after": String(error.retryAfterSeconds) },
  };
}

/** Discovery and the version, with the members of a response that these documents use. */
function answerDocument(
  state: ServerState,
  { method, headers }: InProcessRequest,
  path: string,
): InProcessAnswer {
  const answer = { status: 0, headers: {} as Record<string, string>, body: "" };
  const response = {
    setHeader: (name: string, value: unknown) => {
      answer.headers[name.toLowerCase()] = String(value);
    },
    writeHead: (status: number) => {
      answer.status = status;
    },
    end: (body: string | Buffer) => {
      answer.body = body.toString();
    },
  };
  const request = { method, headers, resume: () => undefined };
  answerOther(
    { state, version: VERSION },
    request as unknown as IncomingMessage,
    response as unknown as ServerResponse,
    path,
  );
  return answer;
}

/** The resource of a path, `plural.group`; empty for documents. */
export function resourceOfPath(uri: string): {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
} {
  const path = parsePath(uri.split("?", 1)[0] ?? "");
  if (path.kind === "other") return { resource: "", namespace: "", name: "", subresource: "" };
  const { namespace, name, subresource } = path.resource;
  return { resource: resourceId(path.resource), namespace, name, subresource };
}
