import { defined, isEncoded, type PayloadCodec } from "@konverge/core";
import type { RunRef } from "../define/run-ref.ts";
import type { RunActions, Started } from "../store/run-actions.ts";
import type { Claimed, Held, RunJournalStore } from "../store/run-journal-store.ts";
import type { RunQueries } from "../store/run-queries.ts";
import type { BufferedSignal, StepRecord } from "../store/run-record.ts";
import type { RunStore } from "../store/run-store.ts";
import type { UpdateAnswer } from "../store/run-updates.ts";
import { decodeEntries, hasEncodedText, RunValues } from "./run-values.ts";
import {
  codecReason,
  createValueCodec,
  isCodecError,
  lenient,
  NO_CODEC,
  type ValueCodec,
} from "./value-codec.ts";

type HeldClaim = Extract<Claimed, { kind: "held" }>;

export interface CodedStoreOptions {
  readonly codec?: PayloadCodec | undefined;
  /** True for a worker: a value that it cannot decode is an error, and blocks the run. Others get the value as it is stored. */
  readonly executes: boolean;
}

/** Returns a store whose values pass the codec on their way to and from `store`. */
export function withCodec(store: RunStore, { codec, executes }: CodedStoreOptions): RunStore {
  if (codec === undefined) return executes ? rejectEncoded(store) : store;
  const strict = createValueCodec(codec);
  const values = executes ? strict : lenient(strict);
  return {
    ...store,
    ...codedJournal(store, values),
    ...codedActions(store, values),
    ...codedQueries(store, values),
  };
}

function codedJournal(store: RunStore, values: ValueCodec): Partial<RunJournalStore> {
  const of = (ref: RunRef) => new RunValues(values, ref);
  return {
    async claim(ref, how) {
      const claimed = await store.claim(ref, how);
      if (claimed.kind !== "held") return claimed;
      return await orUnreadable(claimed, () => of(ref).decodeHeld(claimed));
    },
    async keepInput(held, input) {
      const run = of(held);
      return await run.decodeInput(await store.keepInput(held, await run.encodeInput(input)));
    },
    async commit(held, step, record, { output, ...options } = {}) {
      const run = of(held);
      const encoded = await run.encodeRecord(record);
      const stored = await store.commit(held, step, encoded, {
        ...options,
        ...defined({ output: output && (await run.encodeOutput(output)) }),
      });
      return isSame(stored, encoded) ? copyOf(stored, record) : await run.decodeRecord(stored);
    },
    publish: async (held, output) => await store.publish(held, await of(held).encodeOutput(output)),
    async note(held, step, progress) {
      const run = of(held);
      return await run.decodeProgress(
        await store.note(held, step, await run.encodeProgress(progress)),
      );
    },
    async readSignals(ref, name) {
      return await decodeSignals(of(ref), await store.readSignals(ref, name));
    },
    async refuse(held, name, refused) {
      const run = of(held);
      const encoded = refused.map(async ({ signal, message }) => ({
        signal,
        message: await run.encodeMessage(message),
      }));
      await store.refuse(held, name, await Promise.all(encoded));
    },
    async appendLog(held, lines, logged) {
      const run = of(held);
      await store.appendLog(
        held,
        await Promise.all(lines.map((line) => run.encodeLine(line))),
        logged,
      );
    },
    async appendSpreadLog(spread, lines) {
      const run = of(spread);
      await store.appendSpreadLog(
        spread,
        await Promise.all(lines.map((line) => run.encodeLine(line))),
      );
    },
    async news(held, awaited) {
      const news = await store.news(held, awaited);
      return { ...news, signals: await decodeSignals(of(held), news.signals) };
    },
    async refuseUpdate(held, taken, refusal) {
      await store.refuseUpdate(held, taken, await of(held).encodeRefusal(refusal));
    },
    async leave(held, leave, output) {
      const run = of(held);
      const encoded = await run.encodeLeave(leave);
      return await store.leave(held, encoded, output && (await run.encodeOutput(output)));
    },
  };
}

function codedActions(store: RunStore, values: ValueCodec): Partial<RunActions> {
  return {
    async start(run) {
      const { workflow } = run;
      const input = await new RunValues(values, run).encodeInput(run.input);
      const started = await store.start({ ...run, input });
      return await decodeStarted(started, (id) => new RunValues(values, { workflow, id }));
    },
    async signal(ref, signal) {
      const payload = await new RunValues(values, ref).encodePayload(signal.payload);
      return await store.signal(ref, { ...signal, ...defined({ payload }) });
    },
  };
}

async function decodeStarted(started: Started, of: (id: string) => RunValues): Promise<Started> {
  switch (started.kind) {
    case "created":
    case "full":
      return started;
    case "exists":
      return { ...started, run: await of(started.run.id).decodeView(started.run) };
    case "attached":
    case "rejected": {
      const { id, end } = started;
      return end === undefined ? started : { ...started, end: await of(id).decodeEnd(end) };
    }
  }
}

function codedQueries(store: RunStore, values: ValueCodec): Partial<RunQueries> {
  const of = (ref: RunRef) => new RunValues(values, ref);
  return {
    async get(ref) {
      const run = await store.get(ref);
      return run && (await of(ref).decodeView(run));
    },
    async list(workflow, page) {
      const found = await store.list(workflow, page);
      return {
        ...found,
        runs: await Promise.all(found.runs.map((run) => of(run).decodeSummary(run))),
      };
    },
    async steps(ref) {
      const run = of(ref);
      return await decodeEntries(await store.steps(ref), (record) => run.decodeRecord(record));
    },
    async journal(ref) {
      const { steps, progress } = await store.journal(ref);
      const run = of(ref);
      return {
        steps: await decodeEntries(steps, (record) => run.decodeRecord(record)),
        progress: await decodeEntries(progress, (each) => run.decodeProgress(each)),
      };
    },
    async history(ref) {
      const history = await store.history(ref);
      return history && (await of(ref).decodeHistory(history));
    },
    async refusedSignals(ref) {
      const { count, last } = await store.refusedSignals(ref);
      const decoded = last.map(async (refused) => ({
        ...refused,
        message: await of(ref).decodeMessage(refused.message),
      }));
      return { count, last: await Promise.all(decoded) };
    },
    async logs(ref) {
      return await Promise.all((await store.logs(ref)).map((line) => of(ref).decodeLine(line)));
    },
    async answerTo(ref, updateId) {
      const answer = await store.answerTo(ref, updateId);
      return answer && (await decodeAnswer(of(ref), answer));
    },
  };
}

async function decodeAnswer(run: RunValues, answer: UpdateAnswer): Promise<UpdateAnswer> {
  return answer.kind === "accepted"
    ? { ...answer, ...defined({ value: await run.decodeRecordValue(answer.value) }) }
    : { ...answer, refusal: await run.decodeRefusal(answer.refusal) };
}

/** Returns true if the record is the one just given, whose values need not be decoded. */
function isSame(stored: StepRecord, given: StepRecord): boolean {
  return stored.value === given.value && stored.error?.message === given.error?.message;
}

/** Returns the stored record with the given values, as JSON returns them. */
function copyOf(stored: StepRecord, { value, error, tries }: StepRecord): StepRecord {
  const copy = value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as unknown);
  return { ...stored, ...defined({ value: copy, error, tries }) };
}

/** Notes in the claim that a value cannot be decoded: the execution then blocks the run. */
async function orUnreadable(held: HeldClaim, decode: () => Promise<HeldClaim>): Promise<Claimed> {
  try {
    return await decode();
  } catch (error) {
    if (!isCodecError(error)) throw error;
    return { ...held, unreadable: codecReason(error) };
  }
}

/** Without a codec no value is copied: they are only checked. */
function rejectEncoded(store: RunStore): RunStore {
  const of = (ref: RunRef) => new RunValues(NO_CODEC, ref);
  return {
    ...store,
    async claim(ref, how) {
      const claimed = await store.claim(ref, how);
      if (claimed.kind !== "held" || !hasEncoded(claimed)) return claimed;
      return await orUnreadable(claimed, () => of(ref).decodeHeld(claimed));
    },
    async get(ref) {
      const run = await store.get(ref);
      return run && isEncoded(run.result) ? await of(ref).decodeView(run) : run;
    },
    async start(run) {
      const started = await store.start(run);
      if (started.kind === "exists" && isEncoded(started.run.result)) {
        await of(run).decodeView(started.run);
      }
      return started;
    },
    async readSignals(ref, name) {
      return await decodeSignals(of(ref), await store.readSignals(ref, name));
    },
    async news(held, awaited) {
      const news = await store.news(held, awaited);
      return { ...news, signals: await decodeSignals(of(held), news.signals) };
    },
  };
}

function hasEncoded({ run, parsedInput, steps, progress, signals, failing }: Held): boolean {
  const values = [run.input, parsedInput, failing?.error.message];
  return (
    values.some(isEncoded) ||
    Object.values(run.published ?? {}).some(isEncoded) ||
    signals.some(({ payload }) => isEncoded(payload)) ||
    [...progress.values()].some(hasEncodedText) ||
    [...steps.values()].some(({ value, error }) => isEncoded(value) || isEncoded(error?.message))
  );
}

async function decodeSignals(
  run: RunValues,
  signals: readonly BufferedSignal[],
): Promise<readonly BufferedSignal[]> {
  if (!signals.some(({ payload }) => isEncoded(payload))) return signals;
  return await Promise.all(signals.map((signal) => run.decodeSignal(signal)));
}
