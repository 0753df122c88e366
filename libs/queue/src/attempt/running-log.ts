import type { RedisClient } from "@konverge/redis";
import type { RunningLog } from "../contract/work-queue.ts";
import type { QueueNames } from "../keys/queue-names.ts";

/** Beside everything else in the record of a lost attempt. */
const MAX_BYTES = 8 * 1_024;
/** A lost attempt is found when its job runs again, which may wait behind a backlog. */
const KEPT_MS = 3_600_000;

/** Stores the log of a running attempt: its epoch, then the lines. Longer ones are not stored. */
export async function keepLog(
  redis: RedisClient,
  names: QueueNames,
  { id, epoch, lines }: RunningLog & { readonly id: string },
): Promise<void> {
  if (Buffer.byteLength(lines) > MAX_BYTES) return;
  await redis.set(names.log(id), `${epoch}\n${lines}`, "PX", KEPT_MS);
}

export function decodeLog(text: string): RunningLog {
  const end = text.indexOf("\n");
  return { epoch: Number(text.slice(0, end)), lines: text.slice(end + 1) };
}
