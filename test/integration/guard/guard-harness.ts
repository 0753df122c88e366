import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { largestExcess as largestExcessOf } from "../../sim/largest-excess.ts";
import { expect } from "vitest";
import type { GuardChildConfig, GuardChildCommand, GuardChildWord } from "./guard-child.ts";

/** A call as the server saw it; times in ms of the machine's monotonic clock, which all processes share. */
export interface SeenCall {
  readonly worker: string;
  /** When its guard let it go, as the worker wrote into it. */
  readonly allowedMs: number;
  readonly arrivedMs: number;
  /** Answered, or its connection closed; Infinity while neither. */
  endedMs: number;
}

/** A status to answer with, or never to answer. */
type Answer = number | "hang";

export interface CountingServer extends AsyncDisposable {
  readonly url: string;
  readonly calls: readonly SeenCall[];
  /** How calls are answered from now on. */
  answer: (worker: string) => Answer;
  /** Answers 200 to all that hang. */
  release(): void;
  /** The calls that are under way. */
  underWay(): readonly SeenCall[];
}

export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** A small HTTP server that writes down every call. */
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
  // A connection that is kept must not be closed under a call that is being sent.
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

/** A worker process, and what it said. */
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

/** What the guard of a worker said of one kind, oldest first. */
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
  /** Those that live, and those that were killed. */
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

  /** All that ever lived. */
  get everybody(): readonly FleetWorker[] {
    return this.#all;
  }

  /** Starts one, and resolves once its guard is there. */
  async start(own: Partial<GuardChildConfig> = {}): Promise<FleetWorker> {
    const id = own.workerId ?? `w${this.#all.length}`;
    const config: GuardChildConfig = { ...this.#defaults, ...own, workerId: id };
    const child = spawn(
      process.execPath,
      ["--conditions=@konverge/source", CHILD, JSON.stringify(config)],
      { stdio: ["ignore", "inherit", "inherit", "ipc"] },
    );
    const words: GuardChildWord[] = [];
    const ready = Promise.withResolvers<void>();
    child.on("message", (word: GuardChildWord) => {
      words.push(word);
      if (word.kind === "ready") ready.resolve();
    });
    child.once("exit", (code, signal) => {
      ready.reject(new Error(`worker ${id} ended before it was ready: ${signal ?? code}`));
    });
    const worker: FleetWorker = {
      id,
      process: child,
      words,
      order: (order) => child.connected && child.send(order),
      kill: async () => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const ended = once(child, "exit");
        child.kill("SIGKILL");
        await ended;
        const place = this.workers.indexOf(worker);
        if (place >= 0) this.workers.splice(place, 1);
      },
    };
    this.#all.push(worker);
    await ready.promise;
    this.workers.push(worker);
    return worker;
  }

  /** Tells all that live. */
  order(order: GuardChildCommand): void {
    for (const worker of this.workers) worker.order(order);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#all.map((worker) => worker.kill()));
  }
}

/** How far the calls of any window go beyond `rate * T`: what the promise compares with the burst. */
export function largestExcess(timesMs: readonly number[], ratePerSecond: number): number {
  return largestExcessOf(
    timesMs.map((atMs) => ({ atMs, tokens: 1 })),
    ratePerSecond,
  );
}

/** The same for windows that all begin at `fromMs`. */
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
 * What the network may add to the bound where calls are counted as they arrive. The bound holds for the moments at which
 * calls are allowed. Of those that took at most D to arrive, a window of length T sees what was allowed in T + D, so `rate *
 * D` more; each that took longer (its process was stopped while it sent) is one more. The smallest such sum over all D.
 */
function deliveryAllowance(calls: readonly SeenCall[], ratePerSecond: number): number {
  const delays = calls.map((call) => call.arrivedMs - call.allowedMs).toSorted((a, b) => a - b);
  return delays.reduce(
    (least, delayMs, index) =>
      Math.min(least, (ratePerSecond * delayMs) / 1_000 + delays.length - 1 - index),
    delays.length,
  );
}

/** P5, where calls are allowed and where they arrive. */
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
