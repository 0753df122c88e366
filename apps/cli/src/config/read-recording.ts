import { readFile } from "node:fs/promises";
import { ensureError, KonvergeError } from "@konverge/core";
import { attemptRecordingSchema, type AttemptRecording } from "@konverge/records";

/** Reads the recording of an attempt from a file. @throws KonvergeError `invalid_request` */
export async function readRecording(path: string): Promise<AttemptRecording> {
  const parsed = attemptRecordingSchema.safeParse(await readFileJson(path));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue === undefined ? "" : ` (${issue.path.join(".")}: ${issue.message})`;
  throw new KonvergeError(
    "invalid_request",
    `${path} is not an attempt recording of this version${where}; write one with konverge object recording --save <file>`,
  );
}

async function readFileJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as unknown;
  } catch (cause) {
    const detail = `${path} cannot be read: ${ensureError(cause).message}`;
    throw new KonvergeError("invalid_request", detail, { cause });
  }
}
