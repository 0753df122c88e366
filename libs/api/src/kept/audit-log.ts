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
/** Refused changes have a stream of their own, so that callers without rights displace no changes. */
const KEPT_REFUSED = 10_000;
/** Sequence numbers of refused entries begin here, so that both streams have different IDs. */
const REFUSED_FROM = 1e9;
const CHUNK = 1_000;
const GATHERED_MS = 1_000;
/** Maximum entries of one second. */
const MOST_GATHERED = 1_000;
/** The entries of one author. Further changes are combined, so that no author displaces the entries of the others. */
const OWN_ENTRIES: BucketLimits = { ratePerSecond: 1, burst: 200 };
/** The refused entries of one author. */
const REFUSED_ENTRIES: BucketLimits = { ratePerSecond: 0.1, burst: 200 };
/** The refused entries of all requests without a valid token. */
const UNKNOWN_ENTRIES: BucketLimits = { ratePerSecond: 1 / 60, burst: 100 };
const COMBINED_MS = 60_000;
const MOST_REMEMBERED = 1_000;

/** An entry before it is written. */
export type AuditNote = Omit<AuditEntry, "id" | "at">;

/**
 * The changes made through the API or the command line. About 50,000 are kept. An author has 200 entries, and one more per
 * second; beyond that, an entry per action, cluster and minute counts the changes. Another 10,000 are about refused changes.
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
  /** Reads the changes after `id`, oldest first. The entry is undefined for the format of another version. */
  after(
    id: string,
    limit: number,
  ): Promise<{ readonly id: string; readonly entry: AuditEntry | undefined }[]>;
  /** Returns the newest ID of a change. */
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
  readonly #refusedStream: string;
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
    this.#refusedStream = `${stream}-refused`;
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
    const end = cursor === undefined ? undefined : endsOf(cursor);
    const both = newestFirst(
      this.#entries(this.#stream, end?.changes ?? "+"),
      this.#entries(this.#refusedStream, end?.refused ?? "+", REFUSED_FROM),
    );
    for await (const entry of both) {
      if (!isSeen(entry)) continue;
      if (!Object.entries(wanted).every(([field, value]) => matches(entry, field, value))) continue;
      items.push(entry);
      if (items.length === limit) return { items, next: entry.id };
    }
    return { items };
  }

  /** Reads the entries of a stream up to `end`, newest first. */
  async *#entries(stream: string, end: string, from = 0): AsyncGenerator<AuditEntry> {
    for (let last = end; ;) {
      const rows = await withRedis(this.#redis, () =>
        this.#redis.xrevrange(stream, last, "-", "COUNT", CHUNK),
      );
      for (const [id, fields] of rows) {
        const { ms, sequence } = partsOf(id);
        const entry = entryOf([`${ms}-${sequence + from}`, fields]);
        if (entry !== undefined) yield entry;
      }
      const oldest = rows.at(-1);
      if (oldest === undefined || rows.length < CHUNK) return;
      last = endBefore(partsOf(oldest[0]));
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
    const [stream, kept] = isRefused(note)
      ? [this.#refusedStream, KEPT_REFUSED]
      : [this.#stream, KEPT];
    await this.#redis.xadd(stream, "MAXLEN", "~", kept, "*", "e", text);
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

  #mayAdd(note: AuditNote): boolean {
    const now = performance.now();
    const id = JSON.stringify([isRefused(note), note.via !== undefined, note.by]);
    const { tatMs, waitMs } = takeToken(limitsOf(note), this.#buckets.get(id) ?? 0, now);
    if (waitMs > 0) return false;
    if (this.#buckets.size >= MOST_REMEMBERED) {
      for (const [author, fullAtMs] of this.#buckets) {
        if (fullAtMs <= now) this.#buckets.delete(author);
      }
    }
    this.#buckets.set(id, tatMs);
    return true;
  }

  #combine(note: AuditNote): void {
    const { by, via, action, count } = note;
    // A refused request can name any cluster.
    const cluster = isRefused(note) ? undefined : note.cluster;
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

function isRefused({ action }: AuditNote): boolean {
  return action === "refused";
}

/** Without a valid token, a request has no `via`. */
function limitsOf(note: AuditNote): BucketLimits {
  if (!isRefused(note)) return OWN_ENTRIES;
  return note.via === undefined ? UNKNOWN_ENTRIES : REFUSED_ENTRIES;
}

interface IdParts {
  readonly ms: number;
  readonly sequence: number;
}

function partsOf(id: string): IdParts {
  const [ms, sequence] = id.split("-").map(Number);
  return { ms: ms ?? 0, sequence: sequence ?? 0 };
}

/** The last ID before another. Redis completes one without a sequence to the last of its millisecond. */
function endBefore({ ms, sequence }: IdParts): string {
  if (sequence > 0) return `${ms}-${sequence - 1}`;
  return ms > 0 ? `${ms - 1}` : "0-0";
}

/** Within a millisecond, refused changes are listed before the others. @throws KonvergeError `invalid_request` */
function endsOf(cursor: string): { readonly changes: string; readonly refused: string } {
  const { ms, sequence } = partsOf(checkCursor(cursor));
  return {
    changes: endBefore({ ms, sequence }),
    refused: endBefore({ ms, sequence: Math.max(0, sequence - REFUSED_FROM) }),
  };
}

/** Merges entries that are ordered by descending ID. */
async function* newestFirst(
  changes: AsyncGenerator<AuditEntry>,
  refused: AsyncGenerator<AuditEntry>,
): AsyncGenerator<AuditEntry> {
  let [change, refusal] = await Promise.all([changes.next(), refused.next()]);
  while (change.done !== true || refusal.done !== true) {
    if (refusal.done === true || (change.done !== true && isNewer(change.value, refusal.value))) {
      yield change.value as AuditEntry;
      change = await changes.next();
    } else {
      yield refusal.value;
      refusal = await refused.next();
    }
  }
}

function isNewer(one: AuditEntry, other: AuditEntry): boolean {
  const [a, b] = [partsOf(one.id), partsOf(other.id)];
  return a.ms === b.ms ? a.sequence > b.sequence : a.ms > b.ms;
}

function checkCursor(cursor: string): string {
  if (/^\d{1,15}-\d{1,15}$/.test(cursor)) return cursor;
  const detail = `cursor must be the "next" of an earlier response (got "${cursor}")`;
  throw new KonvergeError("invalid_request", detail, {
    issues: [{ pointer: "/cursor", detail }],
  });
}
