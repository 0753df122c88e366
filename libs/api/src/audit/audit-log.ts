import {
  auditEntrySchema,
  type AuditEntry,
  type AuditPage,
  type AuditQuery,
} from "@konverge/contracts";
import { defined, ensureError, KonvergeError, type BucketLimits } from "@konverge/core";
import { withRedis, type RedisClient } from "@konverge/redis";
import { Buckets } from "../access/buckets.ts";
import { AuditStream, isChained, type AuditBatch } from "./audit-chain.ts";
import {
  readAuditTargets,
  startAuditExport,
  type AuditExport,
  type AuditTargetState,
} from "./audit-export.ts";
import { canonicalText, type AuditChain, type AuditKeys } from "./audit-hash.ts";
import { endBefore, isNewer, partsOf } from "./audit-id.ts";
import type { AuditTarget } from "./audit-target.ts";
import { lineOf } from "./audit-line.ts";
import type { AuditReport } from "./chain-check.ts";
import { verifyStream, type VerifyOptions } from "./verify-audit.ts";

/** About 20 MB. */
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
/** Authors whose entries are counted. A client without a token can name any author. */
const MOST_AUTHORS = 10_000;
const RETRY_MS = 1_000;
/** Entries that wait for Redis. Further ones are combined. */
const MOST_DELAYED = 1_000;

/** An entry before it is written. */
export type AuditNote = Omit<AuditEntry, "id" | "at">;

/**
 * The changes made through the API or the command line. About 50,000 are kept. An author has 200 entries, and one more per
 * second; beyond that, an entry per action, cluster and minute counts the changes. Another 10,000 are about refused changes.
 */
export interface AuditLog {
  /**
   * Resolves when Redis has stored the note. Repeated notes of one second share an entry with a count.
   * @throws KonvergeError `redis_unavailable`
   */
  write(note: AuditNote): Promise<void>;
  /**
   * Records a change that was made. Resolves when Redis has stored the note, or when the first try has failed; further
   * tries follow until `close`.
   */
  record(note: AuditNote): Promise<void>;
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
  /** Verifies the hash chains in Redis. @throws KonvergeError `redis_unavailable` */
  verify(options?: Omit<VerifyOptions, "keys">): Promise<AuditReport[]>;
  /** Returns the entries of both chains as lines, without those up to `after`. @throws KonvergeError `redis_unavailable` */
  lines(after: Readonly<Partial<Record<AuditChain, number>>>): AsyncGenerator<string>;
  /** Delivers all entries to a target, until it is stopped. */
  stream(target: AuditTarget, onError: (error: Error, target: string) => void): AuditExport;
  /** Returns what the targets of all API processes have received. @throws KonvergeError `redis_unavailable` */
  targets(): Promise<readonly AuditTargetState[]>;
  /** Writes the gathered, combined and delayed notes. */
  close(): Promise<void>;
}

export interface AuditLogOptions {
  readonly onError: (error: Error) => void;
  /** Receives each entry before it is written. */
  readonly onEntry?: ((note: AuditNote) => void) | undefined;
  /** Receives the number of entries that could not be written before `close`. */
  readonly onLost?: ((entries: number) => void) | undefined;
  /** Keys of the hash chains. Default: none, for hashes without a key. */
  readonly keys?: AuditKeys | undefined;
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
  readonly #changes: AuditStream;
  readonly #refused: AuditStream;
  readonly #stream: string;
  readonly #refusedStream: string;
  readonly #options: AuditLogOptions;
  readonly #gathered = new NoteCounts();
  readonly #combined = new NoteCounts();
  /** Notes that could not be written. */
  #delayed: Unwritten[] = [];
  /** The times of notes that were written, in ms. */
  readonly #written = new Map<string, number>();
  readonly #buckets = new Map(
    [OWN_ENTRIES, REFUSED_ENTRIES, UNKNOWN_ENTRIES].map((limits) => [
      limits,
      new Buckets(limits, MOST_AUTHORS),
    ]),
  );
  #gatherTimer: NodeJS.Timeout | undefined;
  #combineTimer: NodeJS.Timeout | undefined;
  #retryTimer: NodeJS.Timeout | undefined;

  constructor(redis: RedisClient, stream: string, options: AuditLogOptions) {
    this.#redis = redis;
    this.#stream = stream;
    this.#refusedStream = `${stream}-refused`;
    this.#options = options;
    const [key] = options.keys ?? [];
    this.#changes = new AuditStream(redis, { chain: "changes", stream, kept: KEPT, key });
    this.#refused = new AuditStream(redis, {
      chain: "refused",
      stream: this.#refusedStream,
      kept: KEPT_REFUSED,
      key,
    });
  }

  async write(note: AuditNote): Promise<void> {
    const [failed] = await this.#addOrCount(note);
    if (failed !== undefined) throw failed.error;
  }

  async record(note: AuditNote): Promise<void> {
    this.#delay(await this.#addOrCount(note));
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

  async verify(options: Omit<VerifyOptions, "keys"> = {}): Promise<AuditReport[]> {
    const all = { ...options, keys: this.#options.keys ?? [] };
    return [await verifyStream(this.#changes, all), await verifyStream(this.#refused, all)];
  }

  async *lines(after: Readonly<Partial<Record<AuditChain, number>>>): AsyncGenerator<string> {
    for (const stream of [this.#changes, this.#refused]) {
      const { [stream.chain]: last = 0 } = after;
      for await (const entry of stream.readAll()) {
        if (isChained(entry) && entry.sequence > last) yield lineOf(entry);
      }
    }
  }

  stream(target: AuditTarget, onError: (error: Error, target: string) => void): AuditExport {
    const streams = [this.#changes, this.#refused];
    const [redis, root] = [this.#redis, this.#stream];
    return startAuditExport({ redis, root, streams, target, onError });
  }

  async targets(): Promise<readonly AuditTargetState[]> {
    const streams = [this.#changes, this.#refused];
    return await readAuditTargets({ redis: this.#redis, root: this.#stream, streams });
  }

  async close(): Promise<void> {
    await this.#flushGathered();
    await this.#flushCombined();
    await this.#flushDelayed();
    clearTimeout(this.#retryTimer);
    const lost = this.#delayed.reduce((sum, { batch }) => sum + batch.texts.length, 0);
    if (lost > 0) this.#options.onLost?.(lost);
  }

  async #addOrCount(note: AuditNote): Promise<Unwritten[]> {
    if (this.#isRepeated(note)) this.gather(note);
    else if (!this.#mayAdd(note)) this.#combine(note);
    else return await this.#add([note]);
    return [];
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
    const owner = JSON.stringify([note.via !== undefined, note.by]);
    return this.#buckets.get(limitsOf(note))?.take(owner) === 0;
  }

  #combine(note: AuditNote): void {
    const { by, via, action, count } = note;
    // A refused request can name any cluster.
    const cluster = isRefused(note) ? undefined : note.cluster;
    const isFull = this.#combined.size >= MOST_REMEMBERED;
    const own = isFull ? { by: OTHERS } : { by, ...defined({ via, cluster }) };
    this.#combined.add({ ...own, action, filter: COMBINED, ...defined({ count }) });
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
    await this.#addOrDelay(own);
  }

  async #flushCombined(): Promise<void> {
    clearTimeout(this.#combineTimer);
    this.#combineTimer = undefined;
    await this.#addOrDelay(this.#combined.take());
  }

  async #flushDelayed(): Promise<void> {
    clearTimeout(this.#retryTimer);
    this.#retryTimer = undefined;
    const all = this.#delayed;
    this.#delayed = [];
    const failed: Unwritten[] = [];
    for (const { stream, batch } of all) {
      // Without Redis, every further try would take seconds.
      const [first] = failed;
      if (first === undefined) failed.push(...(await append(stream, batch)));
      else failed.push({ stream, batch, error: first.error });
    }
    this.#delay(failed);
  }

  async #addOrDelay(notes: readonly AuditNote[]): Promise<void> {
    this.#delay(await this.#add(notes));
  }

  #delay(failed: readonly Unwritten[]): void {
    const [first] = failed;
    if (first === undefined) return;
    this.#options.onError(first.error);
    for (const unwritten of failed) {
      const { batch } = unwritten;
      if (this.#delayed.length < MOST_DELAYED) this.#delayed.push(unwritten);
      else for (const text of batch.texts) this.#combine(JSON.parse(text) as AuditNote);
    }
    this.#retryTimer ??= setTimeout(() => void this.#flushDelayed(), RETRY_MS).unref();
  }

  /** Returns the notes that were not written. */
  async #add(notes: readonly AuditNote[]): Promise<Unwritten[]> {
    for (const note of notes) this.#options.onEntry?.(note);
    const failed = await Promise.all([
      append(this.#changes, batchOf(notes.filter((note) => !isRefused(note)))),
      append(this.#refused, batchOf(notes.filter(isRefused))),
    ]);
    return failed.flat();
  }
}

/** Notes that were not written to a stream. */
interface Unwritten {
  readonly stream: AuditStream;
  readonly batch: AuditBatch;
  readonly error: Error;
}

async function append(stream: AuditStream, batch: AuditBatch): Promise<Unwritten[]> {
  try {
    await stream.append(batch);
    return [];
  } catch (error) {
    return [{ stream, batch, error: ensureError(error) }];
  }
}

function batchOf(notes: readonly AuditNote[]): AuditBatch {
  return { texts: notes.map(canonicalText), tried: [] };
}

/** The author of combined entries of too many authors. */
const OTHERS = "others";
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
    if (
      refusal.done === true ||
      (change.done !== true && isNewer(change.value.id, refusal.value.id))
    ) {
      yield change.value as AuditEntry;
      change = await changes.next();
    } else {
      yield refusal.value;
      refusal = await refused.next();
    }
  }
}

function checkCursor(cursor: string): string {
  if (/^\d{1,15}-\d{1,15}$/.test(cursor)) return cursor;
  const detail = `cursor must be the "next" of an earlier response (got "${cursor}")`;
  throw new KonvergeError("invalid_request", detail, {
    issues: [{ pointer: "/cursor", detail }],
  });
}
