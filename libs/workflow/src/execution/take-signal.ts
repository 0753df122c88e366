import type { Advance } from "./advance.ts";
import type { Schema } from "../define/define-workflow.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import type { Refusal } from "../store/run-journal-store.ts";
import type { StepRecord } from "../store/run-record.ts";
import { assertJson } from "../define/json-value.ts";
import { schemaRefusal } from "../define/schema-refusal.ts";

const MAX_MESSAGE = 1_000;

/** A run that has refused more signals than this receives a flood of them, rather than a mistake of a user. */
const FEW_REFUSED = 10;
/** How long an execution that has refused signals collects the next ones, in ms, before it checks them together. */
const REFUSED_PAUSE_MS = 50;

interface SignalWait {
  readonly schema: Schema<unknown> | undefined;
  readonly timeoutMs: number | undefined;
  /** Whether the result is not needed any more. */
  readonly isOver: () => boolean;
}

/**
 * Consumes the first signal of a name that fits the schema. Signals that do not are dropped, and noted for users. A flood of them
 * does not end the execution, so that the run is not replayed for each one.
 */
export async function takeSignal(
  journal: RunJournal,
  key: string,
  name: string,
  { schema, timeoutMs, isOver }: SignalWait,
): Promise<Advance> {
  for (;;) {
    const cancelled = await journal.throwCancel(key, "signal");
    if (cancelled !== undefined) return cancelled;
    const found = await takeFitting(journal, key, name, schema);
    if (typeof found === "object") return found;
    const waitUntilMs =
      timeoutMs === undefined ? undefined : await deadlineOf(journal, key, timeoutMs);
    if (waitUntilMs !== undefined && waitUntilMs <= journal.nowMs()) {
      const message = `no signal "${name}" within ${timeoutMs} ms`;
      return await journal.commit(key, {
        kind: "signal",
        error: { code: "wait_timeout", message },
      });
    }
    const isFlood = found === "refused" && journal.inbox.refusedCount > FEW_REFUSED;
    if (!isFlood || journal.isPausing) return { waitUntilMs };
    await journal.pause(REFUSED_PAUSE_MS, journal.stopped);
    if (journal.stopped.aborted) throw journal.stopped.reason;
    if (isOver()) return { waitUntilMs };
    journal.inbox.forget(name);
  }
}

/** Returns the end of the wait. The first wait sets it, also for executions after a crash. */
async function deadlineOf(journal: RunJournal, key: string, timeoutMs: number): Promise<number> {
  const { untilMs } =
    journal.progressOf(key) ??
    (await journal.note(key, { attempts: 0, delayMs: timeoutMs, keep: true }));
  return untilMs;
}

async function takeFitting(
  journal: RunJournal,
  key: string,
  name: string,
  schema: Schema<unknown> | undefined,
): Promise<StepRecord | "none" | "refused"> {
  let found: "none" | "refused" = "none";
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
    if (refused.length === 0) return found;
    await journal.inbox.refuse(name, refused);
    found = "refused";
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
