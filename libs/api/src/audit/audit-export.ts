import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { ensureError } from "@konverge/core";
import type { AuditSink } from "@konverge/telemetry";
import { readClockUs, runScript, withRedis, type RedisClient } from "@konverge/redis";
import { isChained, type AuditStream } from "./audit-chain.ts";
import type { AuditChain } from "./audit-hash.ts";
import { partsOf } from "./audit-id.ts";
import type { AuditTarget } from "./audit-target.ts";
import { holdExportScript, type ExportCursors } from "./hold-export.ts";

/** Longer than a delivery. */
const LEASE_MS = 60_000;
const POLL_MS = 1_000;
/** Time between two notes that a target is in use. */
const NOTE_EVERY_MS = 60_000;
/** A target that no process has used for longer was removed. */
const SEEN_MS = 3_600_000;
const BATCH = 500;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;

export interface AuditExportOptions {
  readonly redis: RedisClient;
  /** Prefix of the keys with the cursors. */
  readonly root: string;
  readonly streams: readonly AuditStream[];
  readonly target: AuditTarget;
  readonly onError: (error: Error, target: string) => void;
  /** Time between two reads without new entries, in ms. */
  readonly pollMs?: number;
}

/** What a target has received from all processes. */
interface AuditDelivery {
  /** The age of the oldest entry that was not delivered, or 0. */
  readonly lagMs: number;
  /** Number of entries that retention removed before they were delivered. */
  readonly lost: number;
  /** When the last of them was found missing, in epoch ms. */
  readonly lostAtMs?: number;
}

/** A target of an API process. */
export interface AuditTargetState extends AuditDelivery {
  readonly sink: AuditSink;
}

export interface AuditExport {
  readonly target: AuditTarget;
  /** @throws KonvergeError `redis_unavailable` */
  readonly read: () => Promise<AuditDelivery>;
  /** Ends after the current delivery. Another process continues. */
  stop(): Promise<void>;
}

/**
 * Delivers each entry to a target at least once, in the order of its chain. One process at a time has the lease. The
 * cursor is in Redis and moves after the delivery, so a crash repeats entries and loses none.
 */
export function startAuditExport(options: AuditExportOptions): AuditExport {
  const { target, onError, pollMs = POLL_MS } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const holder = randomUUID();
  const rest = (ms: number) => sleep(ms, undefined, { signal, ref: false }).catch(() => undefined);
  const loop = async () => {
    let nextNoteMs = 0;
    for (let failures = 0; !signal.aborted;) {
      try {
        if (performance.now() >= nextNoteMs) {
          await noteTarget(options);
          nextNoteMs = performance.now() + NOTE_EVERY_MS;
        }
        const isBehind = await deliverNext(options, holder, signal);
        failures = 0;
        if (!isBehind) await rest(pollMs);
      } catch (error) {
        if (signal.aborted) return;
        onError(ensureError(error), target.name);
        await rest(
          Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** failures) * (0.5 + Math.random() / 2),
        );
        failures += 1;
      }
    }
  };
  const ended = loop();
  return {
    target,
    read: async () => await readDelivery(options, target.name),
    async stop() {
      stopping.abort();
      await ended;
      await hold(options, holder, { leaseMs: 0 }).catch(() => undefined);
    },
  };
}

async function noteTarget(options: AuditExportOptions): Promise<void> {
  const { redis, target } = options;
  await withRedis(redis, () => redis.hset(targetsKeyOf(options), target.name, Date.now()));
}

/** Returns true if there may be more entries. */
async function deliverNext(
  options: AuditExportOptions,
  holder: string,
  signal: AbortSignal,
): Promise<boolean> {
  let isBehind = false;
  for (const stream of options.streams) {
    const { chain } = stream;
    const cursors = await hold(options, holder);
    if (cursors === undefined) return false;
    const { id, sequence: known } = cursors[chain];
    const stored = await stream.read(rangeAfter(id), BATCH);
    const last = stored.at(-1);
    if (last === undefined) continue;
    // Entries of versions without a chain have no place in it.
    const entries = stored.filter(isChained);
    const before = (entries[0]?.sequence ?? 1) - 1;
    if (entries.length > 0 && (known === undefined || known < before)) {
      // Retention removed the entries between them. They are counted once, also while the target fails.
      const lost = before - (known ?? before);
      await hold(options, holder, { moved: [{ chain, cursor: id, sequence: before, lost }] });
    }
    if (entries.length > 0) await options.target.deliver(entries, signal);
    const sequence = entries.at(-1)?.sequence ?? known ?? "";
    await hold(options, holder, { moved: [{ chain, cursor: last.id, sequence, lost: 0 }] });
    if (stored.length === BATCH) isBehind = true;
  }
  return isBehind;
}

type ReadOptions = Pick<AuditExportOptions, "redis" | "root" | "streams">;

/** IDs have the time of Redis. */
async function readDelivery(options: ReadOptions, target: string): Promise<AuditDelivery> {
  const { redis, streams } = options;
  const key = exportKeyOf(options, target);
  const [lost, lostMs, ...cursors] = await withRedis(redis, () =>
    redis.hmget(key, "lost", "lostMs", ...streams.map(({ chain }) => chain)),
  );
  const nowMs = (await withRedis(redis, () => readClockUs(redis, key))) / 1_000;
  const ages = await Promise.all(
    streams.map(async (stream, at) => {
      const [oldest] = await stream.read(rangeAfter(cursors[at] ?? ""), 1);
      return oldest === undefined ? 0 : nowMs - partsOf(oldest.id).ms;
    }),
  );
  return {
    lagMs: Math.max(0, ...ages),
    lost: Number(lost ?? 0),
    ...(lostMs == null ? {} : { lostAtMs: Number(lostMs) }),
  };
}

/** Reads the targets of API processes that were running within the last hour. @throws KonvergeError `redis_unavailable` */
export async function readAuditTargets(options: ReadOptions): Promise<AuditTargetState[]> {
  const { redis } = options;
  const stored = await withRedis(redis, () => redis.hgetall(targetsKeyOf(options)));
  const present = Object.entries(stored).filter(
    ([, seenMs]) => Date.now() - Number(seenMs) < SEEN_MS,
  );
  return await Promise.all(
    present.map(async ([name]) => ({
      sink: name.startsWith("file ") ? "file" : "http",
      ...(await readDelivery(options, name)),
    })),
  );
}

/** Returns the start of the range after the last delivered ID. */
function rangeAfter(cursor: string): string {
  return cursor === "" ? "-" : `(${cursor}`;
}

function exportKeyOf({ root }: Pick<AuditExportOptions, "root">, target: string): string {
  return `${root}-export/${encodeURIComponent(target)}`;
}

/** A hash of the names of targets, with the time at which a process has last used each. */
function targetsKeyOf({ root }: Pick<AuditExportOptions, "root">): string {
  return `${root}-targets`;
}

function hold(
  options: AuditExportOptions,
  holder: string,
  {
    leaseMs = LEASE_MS,
    moved = [],
  }: {
    readonly leaseMs?: number;
    readonly moved?: readonly {
      readonly chain: AuditChain;
      readonly cursor: string;
      readonly sequence: number | "";
      readonly lost: number;
    }[];
  } = {},
): Promise<ExportCursors | undefined> {
  const { redis, target } = options;
  return withRedis(redis, () =>
    runScript(redis, holdExportScript, {
      keys: { export: exportKeyOf(options, target.name) },
      args: { holder, leaseMs },
      each: moved,
    }),
  );
}
