/** A worker in a separate process: calls a server as fast as its guard admits. Tests kill or stop it. */
import { Agent, request } from "node:http";
import { isKonvergeError, type CallResult, type GuardLimitsInput } from "@konverge/core";
import { createGuard, type GuardEvent } from "@konverge/guard";

export interface GuardChildConfig {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly cluster: string;
  readonly workerId: string;
  readonly serverUrl: string;
  readonly limits: GuardLimitsInput;
  /** True if the guard sends the probe itself; else any call can be the probe. */
  readonly ownProbe: boolean;
  readonly deadlineMs: number;
}

/** Number of concurrent loops, and the called server. */
export interface GuardChildCommand {
  readonly lanes?: number;
  readonly serverUrl?: string;
}

/** An event of the guard; `atMs` is the machine's monotonic clock, shared by all processes. */
export type GuardChildWord =
  | { readonly kind: "ready"; readonly atMs: number }
  | { readonly kind: "event"; readonly atMs: number; readonly event: PlainEvent }
  | { readonly kind: "refused"; readonly atMs: number; readonly code: string };
type PlainEvent =
  | Exclude<GuardEvent, { readonly kind: "error" }>
  | { readonly kind: "error"; readonly message: string };

const config = JSON.parse(process.argv[2] ?? "{}") as GuardChildConfig;
const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
let { serverUrl } = config;
let lanes = 0;
let running = 0;

const monotonicMs = () => Number(process.hrtime.bigint()) / 1e6;
const say = (word: GuardChildWord) => process.send?.(word);
const plain = (event: GuardEvent): PlainEvent =>
  event.kind === "error" ? { kind: "error", message: event.error.message } : event;

process.on("disconnect", () => process.exit());
process.on("message", (order: GuardChildCommand) => {
  serverUrl = order.serverUrl ?? serverUrl;
  lanes = order.lanes ?? lanes;
  while (running < lanes) void lane(running++);
});

const open = () =>
  createGuard({
    redis: { url: config.redisUrl },
    prefix: config.prefix,
    cluster: config.cluster,
    workerId: config.workerId,
    limits: config.limits,
    ...(config.ownProbe ? { probe: (signal: AbortSignal) => call(signal) } : {}),
    onEvent: (event) => say({ kind: "event", atMs: monotonicMs(), event: plain(event) }),
  });
/** A busy machine may not reach Redis in time, and no test is about that. The parent ends a worker that it wants no more. */
async function openGuard(): ReturnType<typeof open> {
  try {
    return await open();
  } catch (error) {
    if (isKonvergeError(error) && error.code === "redis_unavailable") return await openGuard();
    throw error;
  }
}
const guard = await openGuard();
say({ kind: "ready", atMs: monotonicMs() });

async function lane(index: number): Promise<void> {
  for (; index < lanes;) {
    try {
      await call();
    } catch (error) {
      if (!isKonvergeError(error)) throw error;
      say({ kind: "refused", atMs: monotonicMs(), code: error.code });
      await new Promise((resolve) => setTimeout(resolve, error.retryAfterMs ?? 100));
    }
  }
  running -= 1;
}

async function call(probeSignal?: AbortSignal): Promise<void> {
  const permit = await guard.admit(
    {
      verb: "get",
      resource: "things",
      priority: "event",
      ...(probeSignal === undefined ? {} : { probe: true }),
    },
    probeSignal === undefined ? {} : { signal: probeSignal },
  );
  permit.settle(await send(probeSignal));
}

/** Sends the time of admission, so that the server can compute the transit time. */
function send(probeSignal: AbortSignal | undefined): Promise<CallResult> {
  const allowedMs = monotonicMs();
  const { promise, resolve } = Promise.withResolvers<CallResult>();
  const late = AbortSignal.timeout(config.deadlineMs);
  const outgoing = request(serverUrl, {
    agent,
    signal: probeSignal === undefined ? late : AbortSignal.any([late, probeSignal]),
    headers: { "x-worker": config.workerId, "x-allowed-ms": String(allowedMs) },
  });
  outgoing.on("response", (response) => {
    response.resume();
    response.on("end", () => resolve({ kind: "response", status: response.statusCode ?? 0 }));
    response.on("error", () => resolve({ kind: "network" }));
  });
  outgoing.on("error", () => {
    if (probeSignal?.aborted === true) resolve({ kind: "aborted" });
    else resolve({ kind: late.aborted ? "timeout" : "network" });
  });
  outgoing.end();
  return promise;
}
