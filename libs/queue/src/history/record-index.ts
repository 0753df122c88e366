import { ensureError } from "@konverge/core";
import { runScript, type RedisClient } from "@konverge/redis";
import { dropAttemptsScript } from "../scripts/drop-attempts.ts";
import { indexAttemptsScript } from "../scripts/index-attempts.ts";
import { serverStateScript, type ReadServerState } from "../scripts/server-state.ts";
import { decodeRow, encodeRow } from "./attempt-row.ts";
import type { HistoryBatch } from "./history-batch.ts";
import type { HistoryNames } from "./history-names.ts";

/** Redis's overhead in bytes for an index row, and for a stored attempt besides its record. */
const ENTRY_OVERHEAD_BYTES = 150;
/** Most rows dropped per call, beyond twice the number of added ones. */
const DROPPED_AT_LEAST = 200;
const ROWS_PER_CALL = 500;
const DROPPED_WHEN_FULL = 2_000;
/** Share of Redis's memory from which records are dropped in favor of the queue. */
const TIGHT_SHARE = 0.85;
const FREED_WHEN_TIGHT_BYTES = 1_000_000;
/** Shortest interval between two reads of Redis's memory usage, in ms. */
const MEMORY_READ_EVERY_MS = 10_000;

interface IndexedRow {
  readonly id: string;
  readonly text: string;
}

/** The search index of a cluster's attempts. Drops the oldest rows with their records to stay within its budget. */
export class RecordIndex {
  readonly #redis: RedisClient;
  readonly #names: HistoryNames;
  readonly #budgetBytes: number;
  #memoryReadAtMs = -Infinity;
  #tight = false;

  constructor(redis: RedisClient, names: HistoryNames, budgetBytes: number) {
    this.#redis = redis;
    this.#names = names;
    this.#budgetBytes = budgetBytes;
  }

  async add(rows: HistoryBatch["rows"]): Promise<void> {
    const beyond = (await this.#isTight()) ? FREED_WHEN_TIGHT_BYTES : 0;
    if (rows.length === 0 && beyond === 0) return;
    try {
      // At least once, to free memory; in parts, since a script blocks Redis.
      for (let start = 0; start === 0 || start < rows.length; start += ROWS_PER_CALL) {
        await this.#addPart(rows.slice(start, start + ROWS_PER_CALL), start === 0 ? beyond : 0);
      }
    } catch (error) {
      if (!isOutOfMemory(error)) throw error;
      await this.#makeRoom();
    }
  }

  /** Returns the state of the server that has the index. */
  async readServer(): Promise<ReadServerState> {
    const keys = { _key: this.#names.index };
    return await runScript(this.#redis, serverStateScript, { keys });
  }

  async #addPart(rows: HistoryBatch["rows"], beyond: number): Promise<void> {
    const over = await runScript(this.#redis, indexAttemptsScript, {
      keys: { index: this.#names.index },
      args: {
        budget: this.#budgetBytes,
        most: Math.max(DROPPED_AT_LEAST, 2 * rows.length),
        beyond,
      },
      each: rows.map(({ row, recordBytes }) => {
        const text = encodeRow(row);
        const bytes = Buffer.byteLength(text) + recordBytes + 2 * ENTRY_OVERHEAD_BYTES;
        return { text, bytes };
      }),
    });
    await this.#drop(rowsOf(over));
  }

  /** Drops the oldest rows. A full Redis still allows reads and trims. */
  async #makeRoom(): Promise<void> {
    const { index } = this.#names;
    const oldest = await this.#redis.xrange(index, "-", "+", "COUNT", DROPPED_WHEN_FULL);
    await this.#drop(oldest.map(([id, [, text = ""]]) => ({ id, text })));
  }

  /** Drops the records before their rows: rows that remain after a failure are dropped by a later call. */
  async #drop(rows: readonly IndexedRow[]): Promise<void> {
    const last = rows.at(-1);
    if (last === undefined) return;
    const newest = new Map(rows.map(({ id, text }) => [decodeRow(text).key, id]));
    await Promise.all(
      [...newest].map(([key, id]) => {
        const untilMs = Number(id.slice(0, id.indexOf("-")));
        return runScript(this.#redis, dropAttemptsScript, {
          keys: { attempts: this.#names.attempts(key) },
          args: { untilMs },
        });
      }),
    );
    await this.#redis.xtrim(this.#names.index, "MINID", after(last.id));
  }

  /** Reads the memory usage of the server that has the index. A Redis without a limit is never tight. */
  async #isTight(): Promise<boolean> {
    if (performance.now() - this.#memoryReadAtMs < MEMORY_READ_EVERY_MS) return this.#tight;
    this.#memoryReadAtMs = performance.now();
    const { usedBytes = 0, maxBytes = 0 } = await this.readServer();
    this.#tight = maxBytes > 0 && usedBytes > TIGHT_SHARE * maxBytes;
    return this.#tight;
  }
}

function isOutOfMemory(error: unknown): boolean {
  return /\bOOM\b/.test(ensureError(error).message);
}

/** Returns the next id of a stream. */
function after(id: string): string {
  const [ms = "0", serial = "0"] = id.split("-");
  return `${ms}-${Number(serial) + 1}`;
}

function rowsOf(flat: readonly string[]): IndexedRow[] {
  const rows: IndexedRow[] = [];
  for (let at = 0; at + 1 < flat.length; at += 2) {
    rows.push({ id: flat[at] ?? "", text: flat[at + 1] ?? "" });
  }
  return rows;
}
