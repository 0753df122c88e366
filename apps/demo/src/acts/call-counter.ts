import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { ApiCalls } from "../load/act-controllers.ts";

/** The part of an audit event (audit.k8s.io/v1) that is counted. */
interface AuditEvent {
  readonly stage?: string;
  readonly verb?: string;
  readonly userAgent?: string;
  readonly objectRef?: { readonly resource?: string };
  readonly responseStatus?: { readonly code?: number };
  readonly stageTimestamp?: string;
}

interface Counted {
  /** Prefix of the user agent. */
  readonly agent: string;
  /** Completed in this interval, in epoch ms. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** Bookkeeping of watches and elections, the same in all acts. */
const LEFT_OUT = new Set(["leases", "events"]);
const WRITES = new Set(["create", "update", "patch", "delete"]);
/** Verbs that can conflict with an earlier write. A create whose name exists is no conflict. */
const GUARDED = new Set(["update", "patch", "delete"]);

/**
 * Counts API calls in an audit log, without watches, Leases and Events. The real API server and the embedded one
 * use the same format. A JSON Patch whose tests fail is rejected with 422 and counts as a conflict.
 */
export async function countAuditedCalls(path: string, counted: Counted): Promise<ApiCalls> {
  const total = { calls: 0, writes: 0, conflicts: 0 };
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Infinity });
  for await (const line of lines) {
    if (line === "") continue;
    const event = JSON.parse(line) as AuditEvent;
    if (!isCounted(event, counted)) continue;
    const { verb = "", responseStatus: { code = 0 } = {} } = event;
    total.calls += 1;
    if (WRITES.has(verb) && code >= 200 && code < 300) total.writes += 1;
    if (GUARDED.has(verb) && (code === 409 || (verb === "patch" && code === 422))) {
      total.conflicts += 1;
    }
  }
  return total;
}

function isCounted(
  { stage, verb, userAgent, objectRef, stageTimestamp }: AuditEvent,
  { agent, fromMs, toMs }: Counted,
): boolean {
  if (stage !== "ResponseComplete" || verb === "watch" || !userAgent?.startsWith(agent))
    return false;
  // Discovery and health have no object.
  if (objectRef?.resource === undefined || LEFT_OUT.has(objectRef.resource)) return false;
  const atMs = Date.parse(stageTimestamp ?? "");
  return atMs >= fromMs && atMs <= toMs;
}
