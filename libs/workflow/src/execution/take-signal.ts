import type { Advance } from "./advance.ts";
import type { Schema } from "../define/define-workflow.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import type { BufferedSignal } from "../store/run-record.ts";
import { assertJson } from "../define/json-value.ts";
import { schemaRefusal } from "../define/schema-refusal.ts";

/** Consumes the first signal of a name that fits the schema. Signals that do not are recorded and dropped. */
export async function takeSignal(
  journal: RunJournal,
  key: string,
  name: string,
  { schema, timeoutMs }: { schema: Schema<unknown> | undefined; timeoutMs: number | undefined },
): Promise<Advance> {
  const cancelled = await journal.throwCancel(key, "signal");
  if (cancelled !== undefined) return cancelled;
  for (const taken of journal.buffered.filter((signal) => signal.name === name)) {
    const { payload, by, id } = taken;
    const sender = by === undefined ? {} : { by };
    const parsed = parse(schema, payload);
    if ("value" in parsed) {
      assertJson(parsed.value, `the payload of signal "${name}", as its schema parses it,`);
      // The parsed value, since a default or a transform may give another one in the next execution.
      const record = { kind: "signal", value: parsed.value, ...sender } as const;
      return await journal.commit(key, record, { taken });
    }
    await recordDropped(journal, key, id, parsed.refusal, taken);
  }
  if (timeoutMs === undefined) return { waitUntilMs: undefined };
  // The first wait sets the deadline, also for executions after a crash.
  const { untilMs } =
    journal.progressOf(key) ??
    (await journal.note(key, { attempts: 0, delayMs: timeoutMs, keep: true }));
  if (untilMs > journal.nowMs()) return { waitUntilMs: untilMs };
  const error = { code: "wait_timeout", message: `no signal "${name}" within ${timeoutMs} ms` };
  return await journal.commit(key, { kind: "signal", error });
}

async function recordDropped(
  journal: RunJournal,
  key: string,
  id: string,
  refusal: string,
  taken: BufferedSignal,
): Promise<void> {
  const message = `signal ${id} does not fit the schema and was dropped: ${refusal}`;
  await journal.commit(
    `${key}!${id}`,
    { kind: "signal", error: { code: "invalid_request", message: message.slice(0, 1_000) } },
    { taken },
  );
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
