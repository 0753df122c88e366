import type {
  AcceptedReconcile,
  ObjectHistory,
  ReconcileState,
  GuardView,
  RunDetail,
} from "@konverge/contracts";
import type { Client, ObjectRef, Order, ReadOptions, WaitOptions, WriteOptions } from "./client.ts";
import { streamEvents } from "./event-stream.ts";
import { pagesOf } from "./pages.ts";
import { lastOf, longPoll } from "./long-poll.ts";
import { createSender, type RetryOptions } from "./send-request.ts";

export interface ClientOptions {
  /** Where the HTTP API is, for example `https://konverge.example/`. */
  readonly server: string;
  /** Bearer token. A browser that has logged in needs none. */
  readonly token?: string | undefined;
  /** Default: that of the platform. An API in the same process gives its own. */
  readonly fetch?: ((request: Request) => Promise<Response>) | undefined;
  /** Sent with every call. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** How long one try may take, in ms; a wait comes on top. Default 30,000. */
  readonly timeoutMs?: number | undefined;
  readonly retry?: RetryOptions | undefined;
  /** Default: `Math.random`. */
  readonly random?: (() => number) | undefined;
  readonly sleep?: ((ms: number, signal: AbortSignal | undefined) => Promise<void>) | undefined;
}

/** How long a wait lasts altogether, unless told otherwise. */
const WAIT_MS = 60_000;
/** Three heartbeats of the event stream. */
const SILENCE_MS = 45_000;

/** Talks to the HTTP API. Holds nothing open but what a call needs. */
export function createClient(options: ClientOptions): Client {
  const { retries = 4, baseMs = 200, capMs = 10_000 } = options.retry ?? {};
  const retry = { retries, baseMs, capMs };
  const { random = Math.random, sleep = sleepMs } = options;
  const sender = createSender({
    server: options.server,
    token: options.token,
    headers: options.headers,
    fetch: options.fetch ?? ((request) => fetch(request)),
    timeoutMs: options.timeoutMs ?? 30_000,
    retry,
    random,
    sleep,
  });
  const { send } = sender;
  const get = <Answer>(path: string, query?: object, read: ReadOptions = {}): Promise<Answer> =>
    send<Answer>({ path, query: { ...query }, signal: read.signal });
  const change = <Answer>(
    method: "POST" | "PUT",
    path: string,
    body: unknown,
    write: WriteOptions = {},
  ): Promise<Answer> =>
    send<Answer>({
      method,
      path,
      body,
      signal: write.signal,
      ...(write.idempotencyKey === undefined ? {} : { idempotencyKey: write.idempotencyKey }),
    });
  const post = <Answer>(path: string, body: unknown, write?: WriteOptions): Promise<Answer> =>
    change<Answer>("POST", path, body, write);
  const pages =
    (path: string) =>
    <Item, Answer extends { readonly items: readonly Item[]; readonly next?: string | undefined }>(
      query: object = {},
      read?: ReadOptions,
    ) =>
      pagesOf<Item, Answer>((cursor) =>
        get<Answer>(path, { ...query, ...(cursor === undefined ? {} : { cursor }) }, read),
      );
  const guard =
    (order: "isolate" | "reset") => (cluster: string, given: Order, write?: WriteOptions) =>
      post<GuardView>(`/v1/guards/${encode(cluster)}/${order}`, given, write);

  const polling = { retry, random, sleep };
  const waitAt = <Answer>(
    path: string,
    {
      waitMs,
      signal,
      seen,
    }: { waitMs: number; signal: AbortSignal | undefined; seen?: string | undefined },
  ): Promise<Answer> =>
    send<Answer>({
      path,
      query: { wait: `${waitMs}ms`, seen },
      patienceMs: waitMs,
      signal,
    });
  /** With `seenOf` also what happens before the end. */
  const pollRun = (
    id: string,
    { timeoutMs = WAIT_MS, signal }: WaitOptions = {},
    seenOf?: (run: RunDetail) => string,
  ): AsyncGenerator<RunDetail, void> =>
    longPoll<RunDetail>({
      ...polling,
      id,
      timeoutMs,
      signal,
      ask: (waitMs, seen) => waitAt(`/v1/runs/${encode(id)}`, { waitMs, signal, seen }),
      seenOf,
      hasEnded: ({ endedAt }) => endedAt !== undefined,
      phaseOf: ({ status }) => status,
    });

  return {
    reconciles: {
      create: (body, write) => post<AcceptedReconcile>("/v1/reconciles", body, write),
      createMany: (items, write) => post("/v1/reconciles/batch", { items }, write),
      get: (id, read) => get(`/v1/reconciles/${encode(id)}`, undefined, read),
      wait: (id, { timeoutMs = WAIT_MS, signal } = {}) =>
        lastOf(
          longPoll<ReconcileState>({
            ...polling,
            id,
            timeoutMs,
            signal,
            ask: (waitMs) => waitAt(`/v1/reconciles/${encode(id)}`, { waitMs, signal }),
            hasEnded: ({ phase }) => phase === "finished",
            phaseOf: ({ phase }) => phase,
          }),
        ),
      list: pages("/v1/reconciles"),
      cancel: (id, order, write) => post(`/v1/reconciles/${encode(id)}/cancel`, order, write),
    },
    objects: {
      list: pages("/v1/keys"),
      get: (object, read) => get<ObjectHistory>(pathOf(object), undefined, read),
      attempts: (object, read) => get(`${pathOf(object)}/attempts`, undefined, read),
      attempt: (object, epoch, read) => get(`${pathOf(object)}/attempts/${epoch}`, undefined, read),
      contention: (object, read) => get(`${pathOf(object)}/contention`, undefined, read),
      reconcile: (object, body = {}, write) => post(`${pathOf(object)}/reconcile`, body, write),
      pause: (object, order, write) => post(`${pathOf(object)}/pause`, order, write),
      resume: (object, order, write) => post(`${pathOf(object)}/resume`, order, write),
    },
    runs: {
      start: (body, write) => post("/v1/runs", body, write),
      list: pages("/v1/runs"),
      get: (id, read) => get(`/v1/runs/${encode(id)}`, undefined, read),
      wait: (id, wait) => lastOf(pollRun(id, wait)),
      watch: (id, wait) => pollRun(id, wait, ({ status, steps }) => `${status}/${steps.length}`),
      signal: (id, message, write) => post(`/v1/runs/${encode(id)}/signal`, message, write),
      cancel: (id, order, write) => post(`/v1/runs/${encode(id)}/cancel`, order, write),
      retry: (id, order, write) => post(`/v1/runs/${encode(id)}/retry`, order, write),
      schedules: (query, read) => get("/v1/schedules", query, read),
    },
    attempts: { list: pages("/v1/attempts") },
    controllers: {
      list: (query, read) => get("/v1/controllers", query, read),
      rollups: (query, read) => get("/v1/rollups", query, read),
      orders: (query, read) => get("/v1/orders", query, read),
    },
    queues: {
      list: (query, read) => get("/v1/queues", query, read),
      pauses: (query, read) => get("/v1/pauses", query, read),
      pause: (order, write) => post("/v1/pauses", order, write),
      resume: (order, write) => post("/v1/pauses/resume", order, write),
    },
    workers: { list: (query, read) => get("/v1/workers", query, read) },
    guards: {
      list: (read) => get("/v1/guards", undefined, read),
      get: (cluster, read) => get(`/v1/guards/${encode(cluster)}`, undefined, read),
      isolate: guard("isolate"),
      reset: guard("reset"),
      setRate: (cluster, body, write) =>
        change<GuardView>("PUT", `/v1/guards/${encode(cluster)}/rate`, body, write),
    },
    deadLetters: {
      list: pages("/v1/dead-letters"),
      release: (order, write) => post("/v1/dead-letters/release", order, write),
    },
    fights: { list: (query, read) => get("/v1/fights", query, read) },
    audit: { list: pages("/v1/audit") },
    whoami: (read) => get("/v1/whoami", undefined, read),
    events: (query, { signal, lastEventId } = {}) =>
      streamEvents({
        sender,
        call: { path: "/v1/events", query: { ...query }, signal },
        lastEventId,
        retry,
        silenceMs: SILENCE_MS,
        random,
        sleep,
      }),
  };
}

function pathOf({ cluster = "default", controller, namespace = "_", name }: ObjectRef): string {
  return `/v1/objects/${[cluster, controller, namespace, name].map(encode).join("/")}`;
}

function encode(segment: string): string {
  return encodeURIComponent(segment);
}

/** Rejects with what `signal` is aborted with. */
function sleepMs(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted === true) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
