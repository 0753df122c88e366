import type { ObjectLog } from "@konverge/contracts";
import { formatKey, KonvergeError, type ObjectKey } from "@konverge/core";
import type { WorkQueue } from "@konverge/queue";
import { attemptLogSchema } from "@konverge/records";
import { readRecord } from "../queues/read-record.ts";
import { MAX_ATTEMPTS } from "./object-view.ts";

type Lines = ObjectLog["items"];

/**
 * Returns the kept log lines of the object's attempts, or of one, oldest first. Includes those that a running attempt has stored.
 * @throws KonvergeError `not_found` for an attempt that neither is kept nor has stored lines
 */
export async function readObjectLog(
  queue: WorkQueue,
  key: ObjectKey,
  only?: number,
): Promise<Lines> {
  const [stored, running] = await Promise.all([
    queue.listAttempts(key, { limit: MAX_ATTEMPTS }),
    queue.runningLog(key),
  ]);
  const text = formatKey(key);
  const logs = stored.toReversed().map((attempt) => ({
    epoch: Number(attempt.id),
    lines: readRecord(text, queue.controller, attempt).log ?? [],
  }));
  // An attempt that has ended has the lines in its record.
  if (running !== undefined && running.epoch > (logs.at(-1)?.epoch ?? 0)) {
    const lines = attemptLogSchema.safeParse(JSON.parse(running.lines)).data ?? [];
    logs.push({ epoch: running.epoch, lines });
  }
  const wanted = only === undefined ? logs : logs.filter(({ epoch }) => epoch === only);
  if (only !== undefined && wanted.length === 0) {
    const detail = `attempt ${only} not found; the last ${MAX_ATTEMPTS} attempts are kept`;
    throw new KonvergeError("not_found", detail);
  }
  return wanted.flatMap(({ epoch, lines }) => lines.map((line) => ({ attempt: epoch, ...line })));
}
