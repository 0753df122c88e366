import { defined, ensureError, isKonvergeError, KonvergeError } from "@konverge/core";
import type { Schema, UpdateSender } from "../define/define-workflow.ts";
import { assertJson } from "../define/json-value.ts";
import { schemaIssues, schemaRefusal } from "../define/schema-refusal.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import type { BufferedSignal, StepRecord } from "../store/run-record.ts";
import { updateIdOf, updateSignal, type UpdateRefusal } from "../store/run-updates.ts";
import type { Advance } from "./advance.ts";
import { runInBody } from "./run-body.ts";

const MAX_MESSAGE = 1_000;
const MAX_ISSUES = 20;

export interface UpdateHandler {
  readonly schema: Schema<unknown>;
  readonly answer: (payload: unknown, sender: UpdateSender) => unknown;
  readonly timeoutMs: number | undefined;
}

/**
 * Accepts the first update of a name that fits the schema and that the handler does not refuse. Its answer is recorded in the
 * same call that gives it to the caller. A refused update is no record.
 */
export async function takeUpdate(
  journal: RunJournal,
  key: string,
  name: string,
  { schema, answer, timeoutMs }: UpdateHandler,
): Promise<Advance> {
  const cancelled = await journal.throwCancel(key, "update");
  if (cancelled !== undefined) return cancelled;
  const { inbox } = journal;
  const signalName = updateSignal(name);
  for (;;) {
    const [taken] = await inbox.oldest(signalName);
    if (taken === undefined) break;
    const answered = answerTo(key, taken, { schema, answer });
    if ("refusal" in answered) {
      await inbox.refuseUpdate(taken, answered.refusal);
      continue;
    }
    const { by } = taken;
    const record: StepRecord = {
      kind: "update",
      value: answered.value,
      ...defined({ by }),
    };
    journal.assertFits(key, record);
    return await journal.commit(key, record, { taken, update: updateIdOf(taken.id) });
  }
  if (timeoutMs === undefined) return { waitUntilMs: undefined };
  // The first wait sets the deadline, also for executions after a crash.
  const { untilMs } =
    journal.progressOf(key) ??
    (await journal.note(key, { attempts: 0, delayMs: timeoutMs, keep: true }));
  if (untilMs > journal.nowMs()) return { waitUntilMs: untilMs };
  const error = { code: "wait_timeout", message: `no update "${name}" within ${timeoutMs} ms` };
  return await journal.commit(key, { kind: "update", error });
}

function answerTo(
  key: string,
  { id, by, payload, forged }: BufferedSignal,
  { schema, answer }: Pick<UpdateHandler, "schema" | "answer">,
): { readonly value: unknown } | { readonly refusal: UpdateRefusal } {
  if (forged !== undefined) return { refusal: { message: forged, issues: [] } };
  let parsed: unknown;
  try {
    parsed = schema.parse(payload);
  } catch (error) {
    const message = schemaRefusal(error).slice(0, MAX_MESSAGE);
    const issues = schemaIssues(error).slice(0, MAX_ISSUES);
    return { refusal: { message, issues: issues.map(underPayload) } };
  }
  try {
    const sender = { id: updateIdOf(id), ...defined({ by }) };
    const value = runInBody(key, () => answer(parsed, sender));
    if (value instanceof Promise)
      throw new TypeError("it returned a promise; do such work in a step");
    assertJson(value, `the answer of "${key}"`);
    return { value };
  } catch (thrown) {
    const error = ensureError(thrown);
    if (isKonvergeError(error) && error.terminal && error.code === "terminal") {
      return { refusal: { message: error.message.slice(0, MAX_MESSAGE), issues: [] } };
    }
    const message = `the handler of update "${key}" failed: ${error.message}`;
    throw new KonvergeError("invalid_workflow", message, { cause: error });
  }
}

function underPayload({ pointer, detail }: UpdateRefusal["issues"][number]) {
  return { pointer: `/payload${pointer}`, detail: detail.slice(0, MAX_MESSAGE) };
}
