import type {
  AcceptedReconcile,
  ObjectHistory,
  ReconcileState,
  GuardView,
  RunDetail,
} from "@konverge/contracts";
import type { Client, ObjectRef, Order, ReadOptions, WriteOptions } from "./client.ts";
import { streamEvents } from "./event-stream.ts";
import { pagesOf } from "./pages.ts";
import { ProblemError } from "./problem-error.ts";
import { createSender, delayOf, type RetryOptions } from "./send-request.ts";

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

/** Of one request of a wait: shorter than what proxies between take for a dead connection. */
const WAIT_MS = 20_000;
/** Three heartbeats of the event stream. */
const SILENCE_MS = 45_000;
/** Between two looks at a run that is waited for. */
const FIRST_LOOK_MS = 100;
const LAST_LOOK_MS = 2_000;

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

  const getRun = (id: string, read?: ReadOptions): Promise<RunDetail> =>
    get(`/v1/runs/${encode(id)}`, undefined, read);

  return {
    reconciles: {
      create: (body, write) => post<AcceptedReconcile>("/v1/reconciles", body, write),
      createMany: (items, write) => post("/v1/reconciles/batch", { items }, write),
      get: (id, read) => get(`/v1/reconciles/${encode(id)}`, undefined, read),
      async wait(id, { timeoutMs = 60_000, signal } = {}) {
        const endMs = performance.now() + timeoutMs;
        for (;;) {
          const leftMs = Math.min(WAIT_MS, Math.max(0, Math.ceil(endMs - performance.now())));
          try {
            const state = await send<ReconcileState>({
              path: `/v1/reconciles/${encode(id)}`,
              query: { wait: `${leftMs}ms` },
              patienceMs: leftMs,
              signal,
            });
            if (state.phase === "finished") return state;
            if (performance.now() >= endMs) throw waitTimeout(id, state.phase, timeoutMs);
          } catch (error) {
            // A server that is being replaced does not end a wait; the work goes on meanwhile.
            const again = delayOf(error, 0, retry, random);
            if (again === undefined || performance.now() >= endMs) throw error;
            await sleep(again, signal);
          }
        }
      },
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
      get: getRun,
      async wait(id, { timeoutMs = 60_000, signal } = {}) {
        const endMs = performance.now() + timeoutMs;
        for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(LAST_LOOK_MS, pauseMs * 1.5)) {
          const run = await getRun(id, { signal });
          if (run.endedAt !== undefined) return run;
          const leftMs = endMs - performance.now();
          if (leftMs <= 0) throw waitTimeout(id, run.status, timeoutMs);
          await sleep(Math.min(pauseMs, leftMs), signal);
        }
      },
      signal: (id, message, write) => post(`/v1/runs/${encode(id)}/signal`, message, write),
      cancel: (id, order, write) => post(`/v1/runs/${encode(id)}/cancel`, order, write),
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

function waitTimeout(id: string, phase: string, timeoutMs: number): ProblemError {
  return new ProblemError({
    code: "wait_timeout",
    status: 504,
    title: "The wait ended before the work did",
    detail: `${id} is still ${phase} after ${Number((timeoutMs / 1_000).toPrecision(2))} s; it goes on, ask again or wait longer`,
  });
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
