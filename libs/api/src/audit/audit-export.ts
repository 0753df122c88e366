import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { ensureError } from "@konverge/core";
import { readClockUs, runScript, withRedis, type RedisClient } from "@konverge/redis";
import { isChained, type AuditStream } from "./audit-chain.ts";
import { partsOf } from "./audit-id.ts";
import type { AuditTarget } from "./audit-target.ts";
import { holdExportScript, type ExportCursors } from "./hold-export.ts";

/** Longer than a delivery. */
const LEASE_MS = 60_000;
const POLL_MS = 1_000;
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

export interface AuditExport {
  readonly target: AuditTarget;
  /** Returns the age of the oldest entry that no process has delivered, or 0. @throws KonvergeError `redis_unavailable` */
  readonly lagMs: () => Promise<number>;
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
    for (let failures = 0; !signal.aborted;) {
      try {
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
    lagMs: () => lagOf(options),
    async stop() {
      stopping.abort();
      await ended;
      await hold(options, holder, { leaseMs: 0 }).catch(() => undefined);
    },
  };
}

/** Returns true if there may be more entries. */
async function deliverNext(
  options: AuditExportOptions,
  holder: string,
  signal: AbortSignal,
): Promise<boolean> {
  let isBehind = false;
  for (const stream of options.streams) {
    const cursors = await hold(options, holder);
    if (cursors === undefined) return false;
    const stored = await stream.read(rangeAfter(cursors[stream.chain]), BATCH);
    const last = stored.at(-1);
    if (last === undefined) continue;
    // Entries of versions without a chain have no place in it.
    const entries = stored.filter(isChained);
    if (entries.length > 0) await options.target.deliver(entries, signal);
    await hold(options, holder, { moved: [{ chain: stream.chain, cursor: last.id }] });
    if (stored.length === BATCH) isBehind = true;
  }
  return isBehind;
}

/** IDs have the time of Redis. */
async function lagOf(options: AuditExportOptions): Promise<number> {
  const { redis, streams } = options;
  const key = exportKeyOf(options);
  const cursors = await withRedis(redis, () =>
    redis.hmget(key, ...streams.map(({ chain }) => chain)),
  );
  const nowMs = (await withRedis(redis, () => readClockUs(redis, key))) / 1_000;
  const ages = await Promise.all(
    streams.map(async (stream, at) => {
      const [oldest] = await stream.read(rangeAfter(cursors[at] ?? ""), 1);
      return oldest === undefined ? 0 : nowMs - partsOf(oldest.id).ms;
    }),
  );
  return Math.max(0, ...ages);
}

/** Returns the start of the range after the last delivered ID. */
function rangeAfter(cursor: string): string {
  return cursor === "" ? "-" : `(${cursor}`;
}

function exportKeyOf({ root, target }: AuditExportOptions): string {
  return `${root}-export/${encodeURIComponent(target.name)}`;
}

function hold(
  options: AuditExportOptions,
  holder: string,
  {
    leaseMs = LEASE_MS,
    moved = [],
  }: {
    readonly leaseMs?: number;
    readonly moved?: readonly { readonly chain: string; readonly cursor: string }[];
  } = {},
): Promise<ExportCursors | undefined> {
  const { redis } = options;
  return withRedis(redis, () =>
    runScript(redis, holdExportScript, {
      keys: { export: exportKeyOf(options) },
      args: { holder, leaseMs },
      each: moved,
    }),
  );
}
