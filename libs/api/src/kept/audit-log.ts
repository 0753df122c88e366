import {
  auditEntrySchema,
  type AuditEntry,
  type AuditPage,
  type AuditQuery,
} from "@konverge/contracts";
import { ensureError, KonvergeError } from "@konverge/core";
import { withRedis, type RedisClient } from "@konverge/redis";

const KEPT = 10_000;
const CHUNK = 1_000;
const GATHERED_MS = 1_000;
/** Maximum entries of one second. */
const MOST_GATHERED = 1_000;

/** An entry before it is written. */
export type AuditNote = Omit<AuditEntry, "id" | "at">;

/** The changes made through the API or the command line. About 10,000 are kept. */
export interface AuditLog {
  /** Resolves when Redis has stored the note. */
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
  close(): Promise<void>;
}

export function createAuditLog(
  redis: RedisClient,
  prefix: string,
  onError: (error: Error) => void,
): AuditLog {
  const stream = `${prefix}:audit`;
  const gathered = new Map<string, AuditNote>();
  let timer: NodeJS.Timeout | undefined;

  const add = async (note: AuditNote): Promise<void> => {
    await redis.xadd(stream, "MAXLEN", "~", KEPT, "*", "e", JSON.stringify(note));
  };
  const flush = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const notes = [...gathered.values()];
    gathered.clear();
    if (notes.length === 0) return;
    try {
      await withRedis(redis, () => Promise.all(notes.map(add)));
    } catch (error) {
      onError(ensureError(error));
    }
  };
  return {
    write: (note) => withRedis(redis, () => add(note)),
    gather(note) {
      const { count = 1, ...rest } = note;
      const id = JSON.stringify(rest);
      const known = gathered.get(id);
      if (known === undefined && gathered.size >= MOST_GATHERED) void flush();
      gathered.set(id, { ...rest, count: (known?.count ?? 0) + count });
      timer ??= setTimeout(() => void flush(), GATHERED_MS);
      timer.unref();
    },
    async read({ limit, cursor, ...wanted }, isSeen) {
      const items: AuditEntry[] = [];
      let end = cursor === undefined ? "+" : `(${checkCursor(cursor)}`;
      for (;;) {
        const rows = await withRedis(redis, () =>
          redis.xrevrange(stream, end, "-", "COUNT", CHUNK),
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
    },
    async after(id, limit) {
      const rows = await withRedis(redis, () =>
        redis.xrange(stream, `(${id}`, "+", "COUNT", limit),
      );
      return rows.map((row) => ({ id: row[0], entry: entryOf(row) }));
    },
    async last() {
      const [row] = await withRedis(redis, () => redis.xrevrange(stream, "+", "-", "COUNT", 1));
      return row?.[0] ?? "0-0";
    },
    close: flush,
  };
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
