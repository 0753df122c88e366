import type {
  AcceptedReconcile,
  ObjectHistory,
  ReconcileState,
  GuardView,
  RunDetail,
} from "@konverge/contracts";
import type {
  Client,
  ControllerObject,
  OperatorAction,
  ReadOptions,
  WaitOptions,
  WriteOptions,
} from "./client.ts";
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
    (action: "isolate" | "reset") =>
    (cluster: string, given: OperatorAction, write?: WriteOptions) =>
      post<GuardView>(`/v1/guards/${encode(cluster)}/${action}`, given, write);

  const polling = { retry, random, sleep };
  const waitAt = <Answer>(
    path: string,
    {
      waitMs,
      signal,
      lastState,
    }: { waitMs: number; signal: AbortSignal | undefined; lastState?: string | undefined },
  ): Promise<Answer> =>
    send<Answer>({
      path,
      query: { wait: `${waitMs}ms`, lastState },
      patienceMs: waitMs,
      signal,
    });
  /** With `seenOf` also what happens before the end. */
  const pollRun = (
    id: string,
    { timeoutMs = WAIT_MS, signal }: WaitOptions = {},
    stateOf?: (run: RunDetail) => string,
  ): AsyncGenerator<RunDetail, void> =>
    longPoll<RunDetail>({
      ...polling,
      id,
      timeoutMs,
      signal,
      ask: (waitMs, lastState) => waitAt(`/v1/runs/${encode(id)}`, { waitMs, signal, lastState }),
      stateOf,
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
      cancel: (id, action, write) => post(`/v1/reconciles/${encode(id)}/cancel`, action, write),
    },
    objects: {
      list: pages("/v1/keys"),
      get: (object, read) => get<ObjectHistory>(pathOf(object), undefined, read),
      attempts: (object, read) => get(`${pathOf(object)}/attempts`, undefined, read),
      attempt: (object, epoch, read) => get(`${pathOf(object)}/attempts/${epoch}`, undefined, read),
      contention: (object, read) => get(`${pathOf(object)}/contention`, undefined, read),
      reconcile: (object, body = {}, write) => post(`${pathOf(object)}/reconcile`, body, write),
      pause: (object, action, write) => post(`${pathOf(object)}/pause`, action, write),
      resume: (object, action, write) => post(`${pathOf(object)}/resume`, action, write),
    },
    runs: {
      start: (body, write) => post("/v1/runs", body, write),
      list: pages("/v1/runs"),
      get: (id, read) => get(`/v1/runs/${encode(id)}`, undefined, read),
      wait: (id, wait) => lastOf(pollRun(id, wait)),
      watch: (id, wait) => pollRun(id, wait, ({ status, steps }) => `${status}/${steps.length}`),
      signal: (id, message, write) => post(`/v1/runs/${encode(id)}/signal`, message, write),
      cancel: (id, action, write) => post(`/v1/runs/${encode(id)}/cancel`, action, write),
      retry: (id, action, write) => post(`/v1/runs/${encode(id)}/retry`, action, write),
      schedules: (query, read) => get("/v1/schedules", query, read),
    },
    attempts: { list: pages("/v1/attempts") },
    controllers: {
      list: (query, read) => get("/v1/controllers", query, read),
      rollups: (query, read) => get("/v1/rollups", query, read),
      actions: (query, read) => get("/v1/operator-actions", query, read),
    },
    queues: {
      list: (query, read) => get("/v1/queues", query, read),
      pauses: (query, read) => get("/v1/pauses", query, read),
      pause: (action, write) => post("/v1/pauses", action, write),
      resume: (action, write) => post("/v1/pauses/resume", action, write),
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
      release: (action, write) => post("/v1/dead-letters/release", action, write),
    },
    contention: { list: (query, read) => get("/v1/contention", query, read) },
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

function pathOf({
  cluster = "default",
  controller,
  namespace = "_",
  name,
}: ControllerObject): string {
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
