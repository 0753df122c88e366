import { readFile } from "node:fs/promises";
import { ensureError, KonvergeError, type PayloadCodec } from "@konverge/core";
import type { AnyWorkflow } from "../define/define-workflow.ts";
import { replayHistory } from "../execution/replay-history.ts";
import { HISTORY_FORMAT, type RunHistory } from "../store/run-history.ts";

/**
 * Replays a run that `konverge run export` has written, to test that the code still fits it. No body is executed; every verb without a
 * record waits.
 *
 * @example
 * await replay("test/histories/rollout.json", rollout);
 *
 * @param history the file, or its content; its values may be encoded by `codec`
 * @throws Error with the first record that does not fit; KonvergeError `invalid_request` for another file
 */
export async function replay(
  history: string | URL | RunHistory,
  workflow: AnyWorkflow,
  { codec }: { readonly codec?: PayloadCodec } = {},
): Promise<void> {
  const known =
    typeof history === "string" || history instanceof URL ? await readHistory(history) : history;
  const result = await replayHistory(workflow, checkFormat(known), { codec });
  if (result.fits) return;
  throw new Error(
    `the code does not fit run "${known.id}" of "${known.workflow}": ${result.reason}`,
  );
}

async function readHistory(path: string | URL): Promise<RunHistory> {
  const text = await readFile(path, "utf8");
  try {
    return JSON.parse(text) as RunHistory;
  } catch (cause) {
    const detail = `${String(path)} is not valid JSON: ${ensureError(cause).message}`;
    throw new KonvergeError("invalid_request", detail, { cause });
  }
}

function checkFormat(history: RunHistory): RunHistory {
  // A file may have another one.
  const format: unknown = history.format;
  if (format === HISTORY_FORMAT) return history;
  throw new KonvergeError(
    "invalid_request",
    `the history has format ${JSON.stringify(format)}, not "${HISTORY_FORMAT}"; export the run with konverge run export`,
  );
}
