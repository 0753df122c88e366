import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

/** What of an audit event (audit.k8s.io/v1) is counted. */
interface AuditEvent {
  readonly stage?: string;
  readonly verb?: string;
  readonly userAgent?: string;
  readonly objectRef?: { readonly resource?: string };
  readonly stageTimestamp?: string;
}

/** Bookkeeping of the watches and elections, the same in both acts and none of the story. */
const LEFT_OUT = new Set(["leases", "events"]);

/**
 * Counts API calls in an audit log: those of user agents that start with `agent`, completed in [fromMs, toMs]. Watches,
 * Leases and Events are left out. The log of a real API server and of the embedded one have one format.
 */
export async function countAuditedCalls(
  path: string,
  {
    agent,
    fromMs,
    toMs,
  }: { readonly agent: string; readonly fromMs: number; readonly toMs: number },
): Promise<number> {
  let calls = 0;
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Infinity });
  for await (const line of lines) {
    if (isCounted(line, { agent, fromMs, toMs })) calls += 1;
  }
  return calls;
}

function isCounted(
  line: string,
  {
    agent,
    fromMs,
    toMs,
  }: { readonly agent: string; readonly fromMs: number; readonly toMs: number },
): boolean {
  if (line === "") return false;
  const { stage, verb, userAgent, objectRef, stageTimestamp } = JSON.parse(line) as AuditEvent;
  if (stage !== "ResponseComplete" || verb === "watch" || !userAgent?.startsWith(agent))
    return false;
  // Discovery and health have no object.
  if (objectRef?.resource === undefined || LEFT_OUT.has(objectRef.resource)) return false;
  const atMs = Date.parse(stageTimestamp ?? "");
  return atMs >= fromMs && atMs <= toMs;
}
