import type { Advance } from "./advance.ts";
import type { Schema } from "../define/define-workflow.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import type { Refusal } from "../store/run-journal-store.ts";
import type { StepRecord } from "../store/run-record.ts";
import { assertJson } from "../define/json-value.ts";
import { schemaRefusal } from "../define/schema-refusal.ts";

const MAX_MESSAGE = 1_000;

/** Consumes the first signal of a name that fits the schema. Signals that do not are dropped, and noted for users. */
export async function takeSignal(
  journal: RunJournal,
  key: string,
  name: string,
  { schema, timeoutMs }: { schema: Schema<unknown> | undefined; timeoutMs: number | undefined },
): Promise<Advance> {
  const cancelled = await journal.throwCancel(key, "signal");
  if (cancelled !== undefined) return cancelled;
  const record = await takeFitting(journal, key, name, schema);
  if (record !== undefined) return record;
  if (timeoutMs === undefined) return { waitUntilMs: undefined };
  // The first wait sets the deadline, also for executions after a crash.
  const { untilMs } =
    journal.progressOf(key) ??
    (await journal.note(key, { attempts: 0, delayMs: timeoutMs, keep: true }));
  if (untilMs > journal.nowMs()) return { waitUntilMs: untilMs };
  const error = { code: "wait_timeout", message: `no signal "${name}" within ${timeoutMs} ms` };
  return await journal.commit(key, { kind: "signal", error });
}

async function takeFitting(
  journal: RunJournal,
  key: string,
  name: string,
  schema: Schema<unknown> | undefined,
): Promise<StepRecord | undefined> {
  for (;;) {
    const refused: Refusal[] = [];
    for (const taken of await journal.inbox.oldest(name)) {
      const { forged } = taken;
      const parsed = forged === undefined ? parse(schema, taken.payload) : { refusal: forged };
      if ("refusal" in parsed) {
        refused.push({ signal: taken, message: parsed.refusal.slice(0, MAX_MESSAGE) });
        continue;
      }
      if (refused.length > 0) await journal.inbox.refuse(name, refused);
      assertJson(parsed.value, `the payload of signal "${name}", as its schema parses it,`);
      const sender = taken.by === undefined ? {} : { by: taken.by };
      // The parsed value, since a default or a transform may give another one in the next execution.
      const record = { kind: "signal", value: parsed.value, ...sender } as const;
      return await journal.commit(key, record, { taken });
    }
    if (refused.length === 0) return undefined;
    await journal.inbox.refuse(name, refused);
  }
}

function parse(
  schema: Schema<unknown> | undefined,
  payload: unknown,
): { readonly value: unknown } | { readonly refusal: string } {
  try {
    return { value: schema === undefined ? payload : schema.parse(payload) };
  } catch (error) {
    return { refusal: schemaRefusal(error) };
  }
}
