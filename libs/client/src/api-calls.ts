import { defined, type PayloadCodec } from "@konverge/core";
import type { ReadOptions, WaitOptions, WriteOptions } from "./client.ts";
import { lastOf, longPoll, type LongPoll } from "./long-poll.ts";
import { pagesOf, type Pages } from "./pages.ts";
import { createSender, type RetryOptions, type Sender } from "./send-request.ts";

export interface ClientOptions {
  /** URL of the HTTP API, for example `https://konverge.example/`. */
  readonly server: string;
  /** Bearer token. Not needed in a browser after login. */
  readonly token?: string | undefined;
  /** Default: the `fetch` of the platform. An API in the same process passes its own. */
  readonly fetch?: ((request: Request) => Promise<Response>) | undefined;
  /** Headers of every call. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Timeout of one try in ms, in addition to a wait. Default 30,000. */
  readonly timeoutMs?: number | undefined;
  readonly retry?: RetryOptions | undefined;
  /**
   * Encodes the inputs and payloads of runs before they are sent, and decodes the values of runs in responses. For callers that do
   * not trust the API: neither the API nor Redis receives a plain value. Default: none.
   */
  readonly codec?: PayloadCodec | undefined;
  /** Default: `Math.random`. */
  readonly random?: (() => number) | undefined;
  readonly sleep?: ((ms: number, signal: AbortSignal | undefined) => Promise<void>) | undefined;
}

interface ListPage<Item> {
  readonly items: readonly Item[];
  readonly next?: string | undefined;
}

/** What a wait needs to know about its answers. */
type Waiting<Answer> = Pick<LongPoll<Answer>, "hasEnded" | "phaseOf" | "stateOf">;

/** Default of `WaitOptions.timeoutMs`. */
const WAIT_MS = 60_000;

/** The kinds of calls to the HTTP API: reads, changes, lists and waits. */
export class ApiCalls {
  readonly sender: Sender;
  readonly retry: Required<RetryOptions>;
  readonly random: () => number;
  readonly sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>;

  constructor(options: ClientOptions) {
    const { retries = 4, baseMs = 200, capMs = 10_000 } = options.retry ?? {};
    this.retry = { retries, baseMs, capMs };
    this.random = options.random ?? Math.random;
    this.sleep = options.sleep ?? sleepMs;
    this.sender = createSender({
      server: options.server,
      token: options.token,
      headers: options.headers,
      fetch: options.fetch ?? ((request) => fetch(request)),
      timeoutMs: options.timeoutMs ?? 30_000,
      retry: this.retry,
      random: this.random,
      sleep: this.sleep,
    });
  }

  get<Answer>(path: string, query?: object, { signal }: ReadOptions = {}): Promise<Answer> {
    return this.sender.send<Answer>({ path, query: { ...query }, signal });
  }

  post<Answer>(path: string, body: unknown, write?: WriteOptions): Promise<Answer> {
    return this.#change<Answer>("POST", path, body, write);
  }

  put<Answer>(path: string, body: unknown, write?: WriteOptions): Promise<Answer> {
    return this.#change<Answer>("PUT", path, body, write);
  }

  delete<Answer>(path: string, write?: WriteOptions): Promise<Answer> {
    return this.#change<Answer>("DELETE", path, undefined, write);
  }

  /** Returns the function that lists `path` in pages. */
  pages(
    path: string,
  ): <Item, Answer extends ListPage<Item>>(
    query?: object,
    read?: ReadOptions,
  ) => Pages<Item, Answer> {
    return <Item, Answer extends ListPage<Item>>(query: object = {}, read?: ReadOptions) =>
      pagesOf<Item, Answer>((cursor) =>
        this.get<Answer>(path, { ...query, ...defined({ cursor }) }, read),
      );
  }

  /** Waits for the end of the work at `path`. @throws ProblemError `wait_timeout` */
  wait<Answer>(
    path: string,
    id: string,
    waiting: Waiting<Answer>,
    wait?: WaitOptions,
  ): Promise<Answer> {
    return lastOf(this.poll<Answer>(path, id, waiting, wait));
  }

  /** Sends the same change until it has an answer. @throws ProblemError `wait_timeout` */
  async changeUntil<Answer>(
    path: string,
    body: unknown,
    waiting: Waiting<Answer> & { readonly id: string },
    { timeoutMs = WAIT_MS, signal }: WaitOptions = {},
  ): Promise<Answer> {
    const { retry, random, sleep } = this;
    const ask = async (waitMs: number): Promise<Answer> => {
      const headers = { prefer: `wait=${Math.ceil(waitMs / 1_000)}` };
      const call = { method: "POST", path, body, headers, patienceMs: waitMs, signal } as const;
      return await this.sender.send<Answer>(call);
    };
    return await lastOf(
      longPoll<Answer>({ ...waiting, timeoutMs, signal, retry, random, sleep, ask }),
    );
  }

  /** Yields each new state of the work at `path`, up to its end. @throws ProblemError `wait_timeout` */
  poll<Answer>(
    path: string,
    id: string,
    waiting: Waiting<Answer>,
    { timeoutMs = WAIT_MS, signal }: WaitOptions = {},
  ): AsyncGenerator<Answer, void> {
    const { retry, random, sleep } = this;
    return longPoll<Answer>({
      ...waiting,
      id,
      timeoutMs,
      signal,
      retry,
      random,
      sleep,
      ask: (waitMs, lastState) =>
        this.sender.send<Answer>({
          path,
          query: { wait: `${waitMs}ms`, lastState },
          patienceMs: waitMs,
          signal,
        }),
    });
  }

  #change<Answer>(
    method: "POST" | "PUT" | "DELETE",
    path: string,
    body: unknown,
    { signal, idempotencyKey }: WriteOptions = {},
  ): Promise<Answer> {
    return this.sender.send<Answer>({
      method,
      path,
      body,
      signal,
      ...defined({ idempotencyKey }),
    });
  }
}

/** Rejects with the reason of `signal`. */
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
