import {
  auditEntrySchema,
  type AuditEntry,
  type AuditPage,
  type AuditQuery,
} from "@konverge/contracts";
import { defined, ensureError, KonvergeError, takeToken, type BucketLimits } from "@konverge/core";
import { withRedis, type RedisClient } from "@konverge/redis";

/** About 15 MB. */
const KEPT = 50_000;
const CHUNK = 1_000;
const GATHERED_MS = 1_000;
/** Maximum entries of one second. */
const MOST_GATHERED = 1_000;
/** The entries of one author. Further changes are combined, so that no author displaces the entries of the others. */
const OWN_ENTRIES: BucketLimits = { ratePerSecond: 1, burst: 200 };
const COMBINED_MS = 60_000;
const MOST_REMEMBERED = 1_000;

/** An entry before it is written. */
export type AuditNote = Omit<AuditEntry, "id" | "at">;

/**
 * The changes made through the API or the command line. About 50,000 are kept. An author has 200 entries, and one more per
 * second; beyond that, an entry per action, cluster and minute counts the changes.
 */
export interface AuditLog {
  /** Resolves when Redis has stored the note. Repeated notes of one second share an entry with a count. */
  write(note: AuditNote): Promise<void>;
  /**
   * Records requests: those of one second share an entry with a count. A killed process can lose unwritten entries, but the
   * attempts also record the author.
   */
  gather(note: AuditNote): void;
  read(query: AuditQuery, isSeen: (entry: AuditEntry) => boolean): Promise<AuditPage>;
  /** Reads the notes after `id`, oldest first. The entry is undefined for the format of another version. */
  after(
    id: string,
    limit: number,
  ): Promise<{ readonly id: string; readonly entry: AuditEntry | undefined }[]>;
  /** Returns the newest ID. */
  last(): Promise<string>;
  /** Writes the gathered and combined notes. */
  close(): Promise<void>;
}

export interface AuditLogOptions {
  readonly onError: (error: Error) => void;
  /** Receives each entry before it is written. */
  readonly onEntry?: ((note: AuditNote) => void) | undefined;
}

export function createAuditLog(
  redis: RedisClient,
  prefix: string,
  options: AuditLogOptions,
): AuditLog {
  return new RedisAuditLog(redis, `${prefix}:audit`, options);
}

class RedisAuditLog implements AuditLog {
  readonly #redis: RedisClient;
  readonly #stream: string;
  readonly #options: AuditLogOptions;
  readonly #gathered = new NoteCounts();
  readonly #combined = new NoteCounts();
  /** The times of notes that were written, in ms. */
  readonly #written = new Map<string, number>();
  /** The buckets of authors. */
  readonly #buckets = new Map<string, number>();
  #gatherTimer: NodeJS.Timeout | undefined;
  #combineTimer: NodeJS.Timeout | undefined;

  constructor(redis: RedisClient, stream: string, options: AuditLogOptions) {
    this.#redis = redis;
    this.#stream = stream;
    this.#options = options;
  }

  async write(note: AuditNote): Promise<void> {
    if (this.#isRepeated(note)) return this.gather(note);
    if (!this.#mayAdd(note)) return this.#combine(note);
    await withRedis(this.#redis, () => this.#add(note));
  }

  gather(note: AuditNote): void {
    if (this.#gathered.size >= MOST_GATHERED) void this.#flushGathered();
    this.#gathered.add(note);
    this.#gatherTimer ??= setTimeout(() => void this.#flushGathered(), GATHERED_MS).unref();
  }

  async read(
    { limit, cursor, ...wanted }: AuditQuery,
    isSeen: (entry: AuditEntry) => boolean,
  ): Promise<AuditPage> {
    const items: AuditEntry[] = [];
    let end = cursor === undefined ? "+" : `(${checkCursor(cursor)}`;
    for (;;) {
      const rows = await withRedis(this.#redis, () =>
        this.#redis.xrevrange(this.#stream, end, "-", "COUNT", CHUNK),
      );
      for (const row of rows) {
        const entry = entryOf(row);
        if (entry === undefined || !isSeen(entry)) continue;
        if (!Object.entries(wanted).every(([field, value]) => matches(entry, field, value)))
          continue;
        items.push(entry);
        if (items.length === limit) return { items, next: entry.id };
      }
      const last = rows.at(-1);
      if (last === undefined || rows.length < CHUNK) return { items };
      end = `(${last[0]}`;
    }
  }

  async after(id: string, limit: number) {
    const rows = await withRedis(this.#redis, () =>
      this.#redis.xrange(this.#stream, `(${id}`, "+", "COUNT", limit),
    );
    return rows.map((row) => ({ id: row[0], entry: entryOf(row) }));
  }

  async last(): Promise<string> {
    const [row] = await withRedis(this.#redis, () =>
      this.#redis.xrevrange(this.#stream, "+", "-", "COUNT", 1),
    );
    return row?.[0] ?? "0-0";
  }

  async close(): Promise<void> {
    await this.#flushGathered();
    await this.#flushCombined();
  }

  async #add(note: AuditNote): Promise<void> {
    this.#options.onEntry?.(note);
    const text = JSON.stringify(note);
    await this.#redis.xadd(this.#stream, "MAXLEN", "~", KEPT, "*", "e", text);
  }

  #isRepeated(note: AuditNote): boolean {
    const id = JSON.stringify(note);
    const now = performance.now();
    const isRepeated = now - (this.#written.get(id) ?? -Infinity) < GATHERED_MS;
    if (isRepeated) return true;
    if (this.#written.size >= MOST_REMEMBERED) this.#written.clear();
    this.#written.set(id, now);
    return false;
  }

  #mayAdd({ by }: AuditNote): boolean {
    const now = performance.now();
    const { tatMs, waitMs } = takeToken(OWN_ENTRIES, this.#buckets.get(by) ?? 0, now);
    if (waitMs > 0) return false;
    if (this.#buckets.size >= MOST_REMEMBERED) {
      for (const [author, fullAtMs] of this.#buckets) {
        if (fullAtMs <= now) this.#buckets.delete(author);
      }
    }
    this.#buckets.set(by, tatMs);
    return true;
  }

  #combine({ by, via, action, cluster, count }: AuditNote): void {
    this.#combined.add({ by, action, filter: COMBINED, ...defined({ via, cluster, count }) });
    this.#combineTimer ??= setTimeout(() => void this.#flushCombined(), COMBINED_MS).unref();
  }

  async #flushGathered(): Promise<void> {
    clearTimeout(this.#gatherTimer);
    this.#gatherTimer = undefined;
    const own: AuditNote[] = [];
    for (const note of this.#gathered.take()) {
      if (this.#mayAdd(note)) own.push(note);
      else this.#combine(note);
    }
    await this.#addAll(own);
  }

  async #flushCombined(): Promise<void> {
    clearTimeout(this.#combineTimer);
    this.#combineTimer = undefined;
    await this.#addAll(this.#combined.take());
  }

  async #addAll(notes: readonly AuditNote[]): Promise<void> {
    if (notes.length === 0) return;
    try {
      await withRedis(this.#redis, () => Promise.all(notes.map((note) => this.#add(note))));
    } catch (error) {
      this.#options.onError(ensureError(error));
    }
  }
}

const COMBINED = "more changes than the author has entries";

/** Notes that differ in their count only, added up. */
class NoteCounts {
  #notes = new Map<string, AuditNote>();

  get size(): number {
    return this.#notes.size;
  }

  add({ count = 1, ...rest }: AuditNote): void {
    const id = JSON.stringify(rest);
    this.#notes.set(id, { ...rest, count: (this.#notes.get(id)?.count ?? 0) + count });
  }

  /** Returns and removes the notes. */
  take(): AuditNote[] {
    const notes = [...this.#notes.values()];
    this.#notes.clear();
    return notes;
  }
}

/** Undefined for the format of another version. */
function entryOf([id, [, text = "{}"]]: [string, string[]]): AuditEntry | undefined {
  const note = JSON.parse(text) as Record<string, unknown>;
  const at = new Date(Number(id.slice(0, id.indexOf("-")))).toISOString();
  return auditEntrySchema.safeParse({ ...note, id, at }).data;
}

function matches(entry: AuditEntry, field: string, value: unknown): boolean {
  return value === undefined || entry[field as keyof AuditEntry] === value;
}

function checkCursor(cursor: string): string {
  if (/^\d{1,15}-\d{1,15}$/.test(cursor)) return cursor;
  const detail = `cursor must be the "next" of an earlier response (got "${cursor}")`;
  throw new KonvergeError("invalid_request", detail, {
    issues: [{ pointer: "/cursor", detail }],
  });
}
