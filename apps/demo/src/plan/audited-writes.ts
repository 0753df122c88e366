import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

/** The part of an audit event (audit.k8s.io/v1) that is read. */
interface AuditEvent {
  readonly stage?: string;
  readonly verb?: string;
  readonly requestURI?: string;
  readonly userAgent?: string;
  readonly objectRef?: {
    readonly resource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number };
  readonly stageTimestamp?: string;
}

/** A request that was sent to change an object, or to try its change. */
export interface AuditedWrite {
  readonly verb: string;
  /** `namespace/name`. */
  readonly object: string;
  readonly resource: string;
  readonly isDryRun: boolean;
}

interface Interval {
  /** Prefix of the user agent. */
  readonly agent: string;
  /** Completed in this interval, in epoch ms. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** Bookkeeping of elections and events. */
const LEFT_OUT = new Set(["leases", "events"]);
const WRITES = new Set(["create", "update", "patch", "delete", "deletecollection"]);

/** Reads the successful writes from the audit log of an API server, real or embedded. */
export async function readAuditedWrites(
  path: string,
  { agent, fromMs, toMs }: Interval,
): Promise<AuditedWrite[]> {
  const writes: AuditedWrite[] = [];
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Infinity });
  for await (const line of lines) {
    if (line === "") continue;
    const event = JSON.parse(line) as AuditEvent;
    const { stage, verb = "", requestURI = "", userAgent = "", objectRef = {} } = event;
    const { resource = "", namespace = "", name = "" } = objectRef;
    const { code = 0 } = event.responseStatus ?? {};
    const atMs = Date.parse(event.stageTimestamp ?? "");
    if (stage !== "ResponseComplete" || !WRITES.has(verb) || LEFT_OUT.has(resource)) continue;
    if (!userAgent.startsWith(agent) || atMs < fromMs || atMs > toMs) continue;
    if (code < 200 || code >= 300) continue;
    const query = new URLSearchParams(requestURI.split("?", 2)[1]);
    const isDryRun = query.get("dryRun") === "All";
    writes.push({ verb, object: `${namespace}/${name}`, resource, isDryRun });
  }
  return writes;
}
