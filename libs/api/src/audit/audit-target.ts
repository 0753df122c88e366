import { KonvergeError } from "@konverge/core";
import { open, type FileHandle } from "node:fs/promises";
import type { AuditSink } from "@konverge/telemetry";
import type { ChainedEntry } from "./audit-hash.ts";
import { lineOf } from "./audit-line.ts";

/** A place to which the audit log is streamed. */
export interface AuditTarget {
  /** Its label in metrics. */
  readonly sink: AuditSink;
  /** Identifies its cursor in Redis. */
  readonly name: string;
  /** Resolves when the entries of one chain are stored. Entries can be repeated. */
  deliver(entries: readonly ChainedEntry[], signal: AbortSignal): Promise<void>;
}

/** Only the owner reads the file. */
const FILE_MODE = 0o600;
const NEWLINE = 0x0a;
const TAIL_BYTES = 65_536;
const TIMEOUT_MS = 30_000;

/**
 * Appends lines to a file, and flushes it to the disk after each batch. It is opened for each batch, so a file that was
 * renamed by a rotation is not written again.
 */
export function fileTarget(path: string): AuditTarget {
  return {
    sink: "file",
    name: `file ${path}`,
    async deliver(entries) {
      const file = await open(path, "a+", FILE_MODE);
      try {
        await removeTornLine(file);
        await file.appendFile(textOf(entries));
        await file.sync();
      } finally {
        await file.close();
      }
    },
  };
}

/** Removes the start of a line after which the process or the machine crashed. Its entry is delivered again. */
async function removeTornLine(file: FileHandle): Promise<void> {
  const { size } = await file.stat();
  for (let end = size; end > 0;) {
    const from = Math.max(0, end - TAIL_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(end - from), 0, end - from, from);
    const at = buffer.subarray(0, bytesRead).lastIndexOf(NEWLINE);
    if (at === -1) {
      end = from;
      continue;
    }
    const whole = from + at + 1;
    if (whole < size) await file.truncate(whole);
    return;
  }
  if (size > 0) await file.truncate(0);
}

/** Sends lines in POST requests. The receiver confirms them with a 2xx status. */
export function httpTarget(
  url: string,
  {
    token,
    timeoutMs = TIMEOUT_MS,
  }: { readonly token?: string | undefined; readonly timeoutMs?: number },
): AuditTarget {
  const { origin, pathname } = new URL(url);
  return {
    sink: "http",
    // The query can have a secret.
    name: `http ${origin}${pathname}`,
    async deliver(entries, signal) {
      const [first, last] = [entries[0], entries.at(-1)];
      if (first === undefined || last === undefined) return;
      const response = await fetch(url, {
        method: "POST",
        headers: {
          "content-type": "application/x-ndjson",
          "idempotency-key": `${first.chain}-${first.sequence}-${last.sequence}-${last.hash}`,
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
        body: textOf(entries),
        redirect: "manual",
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      });
      await response.body?.cancel();
      if (response.ok) return;
      // Without the URL and the response, which can have secrets.
      throw new KonvergeError("internal", `the receiver answered ${response.status}`);
    },
  };
}

function textOf(entries: readonly ChainedEntry[]): string {
  return entries.map((entry) => `${lineOf(entry)}\n`).join("");
}
