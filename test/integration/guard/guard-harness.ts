import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { largestExcess as largestExcessOf } from "../../sim/largest-excess.ts";
import { expect } from "vitest";
import { Child } from "../../support/child.ts";
import type { GuardChildConfig, GuardChildCommand, GuardChildWord } from "./guard-child.ts";

/** A call as the server received it; times in ms of the machine's monotonic clock, shared by all processes. */
export interface SeenCall {
  readonly worker: string;
  /** Time of admission, as sent by the worker. */
  readonly allowedMs: number;
  readonly arrivedMs: number;
  /** Time of the response or of the closed connection; Infinity before. */
  endedMs: number;
}

/** A response status, or no response. */
type Answer = number | "hang";

export interface CountingServer extends AsyncDisposable {
  readonly url: string;
  readonly calls: readonly SeenCall[];
  /** Sets the response of further calls. */
  answer: (worker: string) => Answer;
  /** Responds with 200 to all hanging calls. */
  release(): void;
  /** The calls in flight. */
  underWay(): readonly SeenCall[];
}

export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** Starts a small HTTP server that records every call. */
export async function startCountingServer(): Promise<CountingServer> {
  const calls: SeenCall[] = [];
  const open = new Set<SeenCall>();
  const hanging = new Set<() => void>();
  const server = createServer((request, response) => {
    const call: SeenCall = {
      worker: String(request.headers["x-worker"]),
      allowedMs: Number(request.headers["x-allowed-ms"]),
      arrivedMs: monotonicMs(),
      endedMs: Infinity,
    };
    calls.push(call);
    open.add(call);
    response.on("close", () => {
      call.endedMs = monotonicMs();
      open.delete(call);
    });
    const answer = result.answer(call.worker);
    const end = (status: number) => {
      response.statusCode = status;
      response.end("{}");
    };
    if (answer !== "hang") return end(answer);
    const release = () => end(200);
    hanging.add(release);
    response.on("close", () => hanging.delete(release));
  });
  // An idle connection must not be closed while a call is being sent.
  server.keepAliveTimeout = 0;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const result: CountingServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    answer: () => 200,
    release() {
      for (const release of hanging) release();
    },
    underWay: () => [...open],
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
  return result;
}

/** A worker process with its output. */
export interface FleetWorker {
  readonly id: string;
  readonly process: ChildProcess;
  readonly words: readonly GuardChildWord[];
  order(order: GuardChildCommand): void;
  kill(): Promise<void>;
}

export type EventOf<Kind extends string> = Extract<
  Extract<GuardChildWord, { readonly kind: "event" }>["event"],
  { readonly kind: Kind }
> & { readonly atMs: number };

/** Returns the guard events of one kind, oldest first. */
export function eventsOf<Kind extends EventOf<string>["kind"]>(
  worker: FleetWorker,
  kind: Kind,
): EventOf<Kind>[] {
  return worker.words.flatMap((word) =>
    word.kind === "event" && word.event.kind === kind
      ? [{ ...word.event, atMs: word.atMs } as EventOf<Kind>]
      : [],
  );
}

const CHILD = fileURLToPath(new URL("guard-child.ts", import.meta.url));

/** Worker processes that end with the fleet. */
export class Fleet implements AsyncDisposable {
  /** Live and killed workers. */
  readonly workers: FleetWorker[] = [];
  readonly #all: FleetWorker[] = [];
  readonly #defaults: Omit<GuardChildConfig, "workerId">;

  constructor(
    defaults: Pick<GuardChildConfig, "redisUrl" | "cluster" | "serverUrl" | "limits"> &
      Partial<GuardChildConfig>,
  ) {
    this.#defaults = {
      prefix: `test-${process.pid}-${Date.now()}`,
      ownProbe: true,
      deadlineMs: 2_000,
      ...defaults,
    };
  }

  get prefix(): string {
    return this.#defaults.prefix;
  }

  /** All workers ever started. */
  get everybody(): readonly FleetWorker[] {
    return this.#all;
  }

  /** Starts a worker. Resolves once its guard is open. */
  async start(own: Partial<GuardChildConfig> = {}): Promise<FleetWorker> {
    const id = own.workerId ?? `w${this.#all.length}`;
    const config: GuardChildConfig = { ...this.#defaults, ...own, workerId: id };
    const child = new Child([CHILD, JSON.stringify(config)], { ipc: true });
    const words: GuardChildWord[] = [];
    const ready = Promise.withResolvers<void>();
    child.process.on("message", (word: GuardChildWord) => {
      words.push(word);
      if (word.kind === "ready") ready.resolve();
    });
    void child.exited.then(([code, signal]) =>
      ready.reject(new Error(`worker ${id} ended before it was ready: ${signal ?? code}`)),
    );
    const worker: FleetWorker = {
      id,
      process: child.process,
      words,
      order: (order) => child.process.connected && child.process.send(order),
      kill: async () => {
        await child.kill();
        const place = this.workers.indexOf(worker);
        if (place >= 0) this.workers.splice(place, 1);
      },
    };
    this.#all.push(worker);
    await ready.promise;
    this.workers.push(worker);
    return worker;
  }

  /** Sends a message to all live workers. */
  order(order: GuardChildCommand): void {
    for (const worker of this.workers) worker.order(order);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#all.map((worker) => worker.kill()));
  }
}

/** Returns the largest excess of a window's calls over `rate * T`, to compare with the burst. */
export function largestExcess(timesMs: readonly number[], ratePerSecond: number): number {
  return largestExcessOf(
    timesMs.map((atMs) => ({ atMs, tokens: 1 })),
    ratePerSecond,
  );
}

/** Returns the same for windows that begin at `fromMs`. */
export function excessFrom(
  fromMs: number,
  timesMs: readonly number[],
  ratePerSecond: number,
): number {
  const after = timesMs.filter((ms) => ms >= fromMs).toSorted((a, b) => a - b);
  return after.reduce(
    (most, ms, index) => Math.max(most, index + 1 - (ratePerSecond * (ms - fromMs)) / 1_000),
    0,
  );
}

/**
 * Returns the network's tolerance for calls that are counted on arrival. The bound holds for admission times. Of the calls
 * that took at most D to arrive, a window of length T contains those admitted in T + D, so `rate * D` more. Each slower call,
 * whose process was stopped while sending, adds one. Returns the smallest such sum over all D.
 */
function deliveryAllowance(calls: readonly SeenCall[], ratePerSecond: number): number {
  const delays = calls.map((call) => call.arrivedMs - call.allowedMs).toSorted((a, b) => a - b);
  return delays.reduce(
    (least, delayMs, index) =>
      Math.min(least, (ratePerSecond * delayMs) / 1_000 + delays.length - 1 - index),
    delays.length,
  );
}

/** Checks P5 for admission times and arrival times. */
export function expectBound(
  calls: readonly SeenCall[],
  { ratePerSecond, burst }: { readonly ratePerSecond: number; readonly burst: number },
): void {
  const allowed = calls.map((call) => call.allowedMs);
  expect(largestExcess(allowed, ratePerSecond)).toBeLessThanOrEqual(burst);
  const arrived = calls.map((call) => call.arrivedMs);
  const most = burst + deliveryAllowance(calls, ratePerSecond);
  expect(largestExcess(arrived, ratePerSecond)).toBeLessThanOrEqual(most);
}
