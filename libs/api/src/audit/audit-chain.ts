import { runScript, withRedis, type RedisClient } from "@konverge/redis";
import { appendAuditScript, type AuditHead } from "./append-audit.ts";
import { hashEntry, type AuditChain, type ChainedEntry } from "./audit-hash.ts";
import { idAfter } from "./audit-id.ts";

/** Entries that one script call appends. */
const MOST_APPENDED = 500;
const CHUNK = 1_000;

/** The state of the chain that the next entries continue. */
interface End {
  readonly head: AuditHead;
  /** The newest ID of the stream. An earlier version adds entries without changing the head. */
  readonly top: string;
  /** The time of Redis, and that of this process when it was read. */
  readonly nowMs: number;
  readonly readMs: number;
}

const NOTHING: AuditHead = { sequence: 0, hash: "", id: "" };
/** No stream has this ID, so the script returns the head. */
const UNREAD: End = { head: NOTHING, top: "unread", nowMs: 0, readMs: 0 };

/** An entry as it is stored. An earlier version wrote entries without a place in the chain. */
export type StoredEntry = Pick<ChainedEntry, "id" | "text"> & Partial<ChainedEntry>;

export function isChained(entry: StoredEntry): entry is ChainedEntry {
  return entry.hash !== undefined;
}

export interface AuditChainOptions {
  readonly chain: AuditChain;
  /** The key of the stream in Redis. */
  readonly stream: string;
  /** About this number of entries is kept, or more. */
  readonly kept: number;
  /** Hashes new entries. */
  readonly key: string | undefined;
}

/**
 * One chain of entries in Redis, to which several processes append. Redis has no SHA-256 for scripts, so a process
 * computes the hashes, and the script rejects them if another process has appended since the head was read.
 */
export class AuditStream {
  readonly chain: AuditChain;
  readonly kept: number;
  readonly #redis: RedisClient;
  readonly stream: string;
  readonly #headKey: string;
  readonly #key: string | undefined;
  #end: End = UNREAD;
  /** Appends of this process run one after the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(redis: RedisClient, { chain, stream, kept, key }: AuditChainOptions) {
    this.#redis = redis;
    this.chain = chain;
    this.kept = kept;
    this.stream = stream;
    this.#headKey = headKeyOf(stream);
    this.#key = key;
  }

  /** Appends entries in their order. If it fails, a repetition with the same `batch` does not append them again. */
  async append(batch: AuditBatch): Promise<void> {
    const appended = this.#last.then(() => this.#append(batch));
    this.#last = appended.catch(() => undefined);
    await appended;
  }

  async #append(batch: AuditBatch): Promise<void> {
    while (batch.texts.length > 0) {
      const part = batch.texts.slice(0, MOST_APPENDED);
      await this.#appendPart(batch, part);
      batch.texts = batch.texts.slice(part.length);
      batch.tried = [];
    }
  }

  async #appendPart(batch: AuditBatch, texts: readonly string[]): Promise<void> {
    for (;;) {
      const end = this.#end;
      const entries = end === UNREAD ? [] : this.#chained(end, texts);
      const last = entries.at(-1);
      if (last !== undefined) batch.tried.push(last);
      // Unknown until Redis responds.
      this.#end = UNREAD;
      const appended = await withRedis(this.#redis, () =>
        runScript(this.#redis, appendAuditScript, {
          keys: { head: this.#headKey, stream: this.stream },
          args: {
            expected: end.head.sequence,
            previous: end.head.hash,
            expectedTop: end.top,
            kept: this.kept,
          },
          each: entries.map(({ id, text, sequence, previous, hash }) => {
            return { id, text, sequence, previous, hash };
          }),
        }),
      );
      const readMs = performance.now();
      if (appended.kind === "added") {
        if (last === undefined) throw new TypeError("the head was not read");
        this.#end = { head: last, top: last.id, nowMs: appended.nowMs, readMs };
        return;
      }
      const { head, top, nowMs } = appended;
      // The response of an earlier try was lost.
      const hasLanded = await this.#hasAny(batch.tried, head.sequence);
      this.#end = { head, top, nowMs, readMs };
      if (hasLanded) return;
    }
  }

  #chained({ head, top, nowMs, readMs }: End, texts: readonly string[]): ChainedEntry[] {
    const ms = Math.floor(nowMs + performance.now() - readMs);
    let { sequence, hash: previous } = head;
    let id = idAfter(ms, [head.id, top]);
    return texts.map((text) => {
      sequence += 1;
      const entry = { chain: this.chain, sequence, id, text, previous };
      const hash = hashEntry(entry, this.#key);
      previous = hash;
      id = idAfter(ms, [id]);
      return { ...entry, hash };
    });
  }

  async #hasAny(tried: readonly ChainedEntry[], sequence: number): Promise<boolean> {
    for (const entry of tried) {
      if (entry.sequence > sequence) continue;
      const [found] = await this.read(entry.id, 1);
      if (found?.hash === entry.hash) return true;
    }
    return false;
  }

  /** Reads entries from an ID, oldest first. An ID with `(` before it is excluded. */
  async read(from: string, limit: number = CHUNK): Promise<StoredEntry[]> {
    const rows = await withRedis(this.#redis, () =>
      this.#redis.xrange(this.stream, from, "+", "COUNT", limit),
    );
    return rows.map(([id, fields]) => this.#stored(id, fields));
  }

  async *readAll(): AsyncGenerator<StoredEntry> {
    for (let from = "-"; ;) {
      const entries = await this.read(from);
      yield* entries;
      const last = entries.at(-1);
      if (last === undefined || entries.length < CHUNK) return;
      from = `(${last.id}`;
    }
  }

  async head(): Promise<AuditHead> {
    const [sequence, hash, id] = await withRedis(this.#redis, () =>
      this.#redis.hmget(this.#headKey, "sequence", "hash", "id"),
    );
    return { sequence: Number(sequence ?? 0), hash: hash ?? "", id: id ?? "" };
  }

  #stored(id: string, fields: readonly string[]): StoredEntry {
    const of = (name: string) => {
      const at = fields.findIndex((field, index) => index % 2 === 0 && field === name);
      return at === -1 ? undefined : fields[at + 1];
    };
    const text = of("e") ?? "";
    const [sequence, previous, hash] = [of("n"), of("p"), of("h")];
    if (sequence === undefined || previous === undefined || hash === undefined) return { id, text };
    return { chain: this.chain, id, text, sequence: Number(sequence), previous, hash };
  }
}

/** Entries to append. */
export interface AuditBatch {
  texts: readonly string[];
  /** The last entry of each try to append the first part of them. */
  tried: ChainedEntry[];
}

/** The head of a stream, in the same slot of a Redis Cluster. */
function headKeyOf(stream: string): string {
  return `${stream}-head/{${stream}}`;
}
