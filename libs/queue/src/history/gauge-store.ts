import { defined, type BreakerMode } from "@konverge/core";
import { withRedis, type RedisClient } from "@konverge/redis";
import { historyNames, MINUTE_MS, type HistoryNames } from "./history-names.ts";

const KEPT_MS = 24 * 3_600_000;
/** Minutes per round trip. */
const MINUTES_AT_ONCE = 240;

/** The state of a cluster at one moment. */
export interface GaugeSample {
  readonly controllers: readonly {
    readonly name: string;
    readonly waiting: number;
    readonly oldestMs: number;
    /** True if the whole controller is paused. */
    readonly isPaused: boolean;
    /** The digests of the versions that live workers run; empty without one. */
    readonly version: string;
  }[];
  readonly guard?: {
    readonly mode: BreakerMode;
    /** Calls per second, now and as configured. */
    readonly allowed: number;
    readonly limit: number;
  };
  /** Calls by worker, since its start. */
  readonly calls: Readonly<
    Record<string, { readonly admitted: number; readonly deferred: number }>
  >;
  /** Calls that wait for a token. */
  readonly waitingCalls: number;
  /** The number of versions that live workers run, by queue; without queues that no worker serves. */
  readonly served: ReadonlyMap<string, number>;
  /** True if Redis uses so much of its `maxmemory` that an operator should act. */
  readonly isMemoryHigh: boolean;
}

/** What is known of the workers of a queue, to the sample. */
export interface ServedQueue {
  /** The last sample with a worker. */
  readonly seenMs: number;
  /** The first sample with several versions, until only one is left. */
  readonly mixedMs?: number;
}

/** The samples of one minute: the highest of lengths and ages, the sum of calls, and the most severe state. */
export interface GaugeMinute {
  readonly atMs: number;
  readonly controllers: ReadonlyMap<
    string,
    {
      readonly waiting: number;
      readonly oldestMs: number;
      readonly isPaused: boolean;
      /** Set in the minute in which the running versions changed. */
      readonly version?: string;
    }
  >;
  readonly breaker?: BreakerMode;
  readonly allowed?: number;
  readonly limit?: number;
  readonly calls: number;
  readonly deferred: number;
  readonly waitingCalls: number;
}

/** Values of a cluster per minute, kept for 24 h. Zeros and unchanged values are not stored. */
export interface GaugeStore {
  /** Reserves the next `forMs` for the caller. False if another process has them. */
  claim(forMs: number): Promise<boolean>;
  note(sample: GaugeSample): Promise<void>;
  /** The minutes with a sample, oldest first. */
  read(minutes: number): Promise<GaugeMinute[]>;
  known(): Promise<{
    /** The queues that workers served in the last 24 h. */
    readonly served: ReadonlyMap<string, ServedQueue>;
    /** The first sample since which the memory of Redis has been high. */
    readonly memoryHighMs: number | undefined;
  }>;
}

/** Opens the store on an existing connection. All methods reject with `redis_unavailable` if Redis is unavailable. */
export function createGaugeStore(redis: RedisClient, prefix: string, cluster: string): GaugeStore {
  const names = historyNames(prefix, cluster);
  const known = async () => {
    const last = await withRedis(redis, () => readLast(redis, names));
    return {
      served: new Map(Object.entries(last?.served ?? {})),
      memoryHighMs: last?.memoryHighMs,
    };
  };
  return {
    claim: async (forMs) =>
      (await withRedis(redis, () => redis.set(names.sampler, "1", "PX", forMs, "NX"))) === "OK",
    note: (sample) => withRedis(redis, () => noteSample(redis, names, sample)),
    read: (minutes) => readMinutes(redis, names, minutes),
    known,
  };
}

/** The values that the next sample is compared with. */
interface LastSample {
  readonly versions: Readonly<Record<string, string>>;
  readonly calls: GaugeSample["calls"];
  /** Absent in samples of older versions. */
  readonly served?: Readonly<Record<string, ServedQueue>>;
  /** Absent while the memory of Redis is not high. */
  readonly memoryHighMs?: number;
}

const SEVERITY: readonly BreakerMode[] = ["closed", "halfOpen", "open", "isolated"];

/** Only the process with the claim writes, so that it may read first. */
async function noteSample(
  redis: RedisClient,
  names: HistoryNames,
  sample: GaugeSample,
): Promise<void> {
  const key = names.gauges(Math.floor(Date.now() / MINUTE_MS));
  const [before, last] = await Promise.all([redis.hgetall(key), readLast(redis, names)]);
  const fields = new Map<string, string | number>();
  const most = (field: string, value: number) => {
    if (value > Number(before[field] ?? 0)) fields.set(field, Math.round(value));
  };
  fields.set("samples", Number(before["samples"] ?? 0) + 1);
  const versions: Record<string, string> = { ...last?.versions };
  for (const { name, waiting, oldestMs, isPaused, version } of sample.controllers) {
    most(`waiting/${name}`, waiting);
    most(`oldest/${name}`, oldestMs);
    most(`paused/${name}`, isPaused ? 1 : 0);
    if (version === "") continue;
    if (versions[name] !== undefined && versions[name] !== version) {
      fields.set(`version/${name}`, version);
    }
    versions[name] = version;
  }
  if (sample.guard !== undefined) {
    const { mode, allowed, limit } = sample.guard;
    fields.set("allowed", Math.round(allowed * 10) / 10);
    fields.set("limit", limit);
    if (SEVERITY.indexOf(mode) >= SEVERITY.indexOf(before["breaker"] as BreakerMode)) {
      fields.set("breaker", mode);
    }
  }
  for (const count of ["admitted", "deferred"] as const) {
    const added = addedCalls(sample.calls, last?.calls, count);
    if (added > 0) fields.set(count, Number(before[count] ?? 0) + added);
  }
  most("waitingCalls", sample.waitingCalls);
  const { memoryHighMs = Date.now(), ...others } = last ?? {};
  const kept: LastSample = {
    // Keeps fields of a newer version, which samples the cluster as well.
    ...others,
    versions,
    calls: sample.calls,
    served: servedQueues(sample.served, last?.served ?? {}),
    ...(sample.isMemoryHigh ? { memoryHighMs } : {}),
  };
  await Promise.all([
    redis.hset(key, ...[...fields].flat()),
    redis.pexpire(key, KEPT_MS),
    redis.set(names.lastSample, JSON.stringify(kept), "PX", KEPT_MS),
  ]);
}

async function readLast(redis: RedisClient, names: HistoryNames): Promise<LastSample | undefined> {
  const text = await redis.get(names.lastSample);
  return text === null ? undefined : (JSON.parse(text) as LastSample);
}

/** Adds a sample to what is known of the queues, without those that were not served for a day. */
function servedQueues(
  served: GaugeSample["served"],
  before: Readonly<Record<string, ServedQueue>>,
): Readonly<Record<string, ServedQueue>> {
  const nowMs = Date.now();
  const kept = Object.entries(before).filter(([, { seenMs }]) => seenMs + KEPT_MS > nowMs);
  const current = [...served].map(([name, versions]) => {
    const mixedMs = versions > 1 ? (before[name]?.mixedMs ?? nowMs) : undefined;
    return [name, { seenMs: nowMs, ...defined({ mixedMs }) }] as const;
  });
  return Object.fromEntries([...kept, ...current]);
}

/** Calls since the last sample. The first sample of a worker is only a start. */
function addedCalls(
  now: GaugeSample["calls"],
  last: GaugeSample["calls"] | undefined,
  count: "admitted" | "deferred",
): number {
  return Object.entries(now).reduce((sum, [worker, calls]) => {
    const before = last?.[worker]?.[count];
    return before === undefined ? sum : sum + Math.max(0, calls[count] - before);
  }, 0);
}

async function readMinutes(
  redis: RedisClient,
  names: HistoryNames,
  minutes: number,
): Promise<GaugeMinute[]> {
  const now = Math.floor(Date.now() / MINUTE_MS);
  const first = now - minutes + 1;
  const read: GaugeMinute[] = [];
  for (let from = first; from <= now; from += MINUTES_AT_ONCE) {
    const some = Array.from(
      { length: Math.min(MINUTES_AT_ONCE, now - from + 1) },
      (_, at) => from + at,
    );
    const hashes = await withRedis(redis, () =>
      Promise.all(some.map((minute) => redis.hgetall(names.gauges(minute)))),
    );
    for (const [at, fields] of hashes.entries()) {
      if (fields["samples"] !== undefined) read.push(minuteOf((from + at) * MINUTE_MS, fields));
    }
  }
  return read;
}

function minuteOf(atMs: number, fields: Readonly<Record<string, string>>): GaugeMinute {
  const num = (field: string) => Number(fields[field] ?? 0);
  const named = Object.keys(fields).flatMap((field) => {
    const slash = field.indexOf("/");
    return slash === -1 ? [] : [field.slice(slash + 1)];
  });
  const controllers = [...new Set(named)].map((name) => {
    const version = fields[`version/${name}`];
    return [
      name,
      {
        waiting: num(`waiting/${name}`),
        oldestMs: num(`oldest/${name}`),
        isPaused: num(`paused/${name}`) === 1,
        ...defined({ version }),
      },
    ] as const;
  });
  const { breaker } = fields;
  return {
    atMs,
    controllers: new Map(controllers),
    ...(breaker === undefined
      ? {}
      : { breaker: breaker as BreakerMode, allowed: num("allowed"), limit: num("limit") }),
    calls: num("admitted"),
    deferred: num("deferred"),
    waitingCalls: num("waitingCalls"),
  };
}
