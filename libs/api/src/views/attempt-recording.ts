import { formatKey, KonvergeError, type ObjectKey } from "@konverge/core";
import { attemptRecordingSchema, type AttemptRecording } from "@konverge/records";
import type { QueueAccess } from "../queues/queue-access.ts";

const FIX =
  "set record: { reads: true } in the controller; recordings are kept for 7 days, at most 20 per object";

/**
 * Returns the recording of an attempt.
 * @param epoch the number of the attempt, or `latest`
 * @throws KonvergeError `not_found`, `invalid_request`
 */
export async function readRecording(
  access: QueueAccess,
  key: ObjectKey,
  epoch: string,
): Promise<AttemptRecording> {
  const store = access.recordings(key.cluster);
  const text = formatKey(key);
  const recorded = await store.list(text);
  const number = epoch === "latest" ? recorded[0] : Number(epoch);
  if (number === undefined) {
    throw new KonvergeError("not_found", `${text} has no recorded attempt; ${FIX}`);
  }
  if (!Number.isSafeInteger(number) || number < 0) {
    throw new KonvergeError("invalid_request", `attempt "${epoch}" must be a number or "latest"`);
  }
  const found = await store.read(text, number);
  if (found === undefined) {
    const has = recorded.length === 0 ? FIX : `recorded attempts: ${recorded.join(", ")}`;
    throw new KonvergeError("not_found", `attempt ${number} of ${text} has no recording; ${has}`);
  }
  const parsed = attemptRecordingSchema.safeParse(JSON.parse(found));
  if (parsed.success) return parsed.data;
  const detail = "the recording has the format of another version; use the version of its worker";
  throw new KonvergeError("not_found", `attempt ${number} of ${text}: ${detail}`);
}
