import {
  defined,
  isEncoded,
  KonvergeError,
  type CodecContext,
  type CodecValueKind,
  type PayloadCodec,
} from "@konverge/core";
import { workflowOf, type RunRef } from "../define/run-ref.ts";
import type { EndedRun } from "../store/run-actions.ts";
import type { RunHistory } from "../store/run-history.ts";
import type { Held, Leave, RunOutputText } from "../store/run-journal-store.ts";
import type {
  BufferedSignal,
  FailedTry,
  Failing,
  Failure,
  LogLine,
  RunSummary,
  RunView,
  StepProgress,
  StepRecord,
} from "../store/run-record.ts";
import type { UpdateRefusal } from "../store/run-updates.ts";
import {
  createValueCodec,
  isCodecError,
  isForged,
  NO_CODEC,
  type ValueCodec,
} from "./value-codec.ts";

/** Encodes, or decodes, a value of one run. */
type Transform = <T>(value: T, kind: CodecValueKind) => Promise<T>;

/** The reports of a step without a record. */
type Reported = Pick<StepProgress, "message" | "heartbeat" | "tries">;

/** Returns true if the codec has encoded the reports of a step without a record. */
export function hasEncodedText({ message, heartbeat, tries }: Reported): boolean {
  return isEncoded(message) || isEncoded(heartbeat?.progress) || isEncoded(tries?.[0]?.message);
}

/** Encodes and decodes the parts of one run that hold values of users. All other parts stay readable. */
export class RunValues {
  readonly #encode: Transform;
  readonly #decode: Transform;

  constructor(values: ValueCodec, { workflow, id }: RunRef) {
    const contextOf = (kind: CodecValueKind): CodecContext => ({
      workflow: workflowOf(workflow),
      run: id,
      kind,
    });
    this.#encode = async <T>(value: T, kind: CodecValueKind) =>
      (await values.encode(value, contextOf(kind))) as T;
    this.#decode = async <T>(value: T, kind: CodecValueKind) =>
      (await values.decode(value, contextOf(kind))) as T;
  }

  encodeInput(input: unknown): Promise<unknown> {
    return this.#encode(input, "input");
  }

  decodeInput(input: unknown): Promise<unknown> {
    return this.#decode(input, "input");
  }

  encodePayload(payload: unknown): Promise<unknown> {
    return this.#encode(payload, "payload");
  }

  encodeMessage(message: string): Promise<string> {
    return this.#encode(message, "message");
  }

  decodeMessage(message: string): Promise<string> {
    return this.#decode(message, "message");
  }

  decodeRecordValue(value: unknown): Promise<unknown> {
    return this.#decode(value, "record");
  }

  async encodeRecord(record: StepRecord): Promise<StepRecord> {
    const { value, error, tries } = record;
    return {
      ...record,
      ...defined({
        value: await this.#encode(value, "record"),
        error: error && (await this.encodeFailure(error)),
        tries: await this.#transformTries(tries, this.#encode),
      }),
    };
  }

  async decodeRecord<T extends StepRecord>(record: T): Promise<T> {
    const { value, error, tries } = record;
    if (!isEncoded(value) && error === undefined && tries === undefined) return record;
    return {
      ...record,
      ...defined({
        value: await this.#decode(value, "record"),
        error: error && (await this.decodeFailure(error)),
        tries: await this.#transformTries(tries, this.#decode),
      }),
    };
  }

  async encodeFailure(failure: Failure): Promise<Failure> {
    const { message, frames } = failure;
    return {
      ...failure,
      message: await this.encodeMessage(message),
      ...(frames === undefined ? {} : { frames: [await this.encodeMessage(frames.join("\n"))] }),
    };
  }

  async decodeFailure(failure: Failure): Promise<Failure> {
    const { message, frames } = failure;
    const texts = frames && (await Promise.all(frames.map((text) => this.decodeMessage(text))));
    return {
      ...failure,
      message: await this.decodeMessage(message),
      ...defined({ frames: texts?.flatMap((text) => text.split("\n")) }),
    };
  }

  async encodeLeave(leave: Leave): Promise<Leave> {
    switch (leave.kind) {
      case "waiting":
        return leave;
      case "blocked": {
        const { reason, error, quotesError = error !== undefined } = leave;
        // Others name only steps, versions and limits.
        if (!quotesError) return leave;
        return {
          ...leave,
          reason: await this.encodeMessage(reason),
          ...defined({ error: error && (await this.encodeFailure(error)) }),
        };
      }
      case "compensating": {
        const { failing } = leave;
        return {
          ...leave,
          failing: { ...failing, error: await this.encodeFailure(failing.error) },
        };
      }
      case "continued":
        return { ...leave, input: await this.encodeInput(leave.input) };
      case "done":
        return { ...leave, result: await this.#encode(leave.result, "result") };
      case "failed":
      case "cancelled":
        return { ...leave, error: await this.encodeFailure(leave.error) };
    }
  }

  async encodeOutput(output: RunOutputText): Promise<RunOutputText> {
    const values = JSON.parse(output.published) as Record<string, unknown>;
    return { published: JSON.stringify(await this.#each(values, this.#encode)) };
  }

  async encodeLine(line: LogLine): Promise<LogLine> {
    const { message, fields } = line;
    return {
      ...line,
      message: await this.#encode(message, "log"),
      ...(fields === undefined
        ? {}
        : { fields: { [ENCODED_FIELDS]: await this.#encode<unknown>(fields, "log") } }),
    };
  }

  async decodeLine(line: LogLine): Promise<LogLine> {
    const { message, fields } = line;
    const encoded = fields?.[ENCODED_FIELDS];
    const decoded = isEncoded(encoded) ? await this.#decode<unknown>(encoded, "log") : encoded;
    return {
      ...line,
      message: await this.#decode(message, "log"),
      ...(isEncoded(encoded) && !isEncoded(decoded)
        ? { fields: decoded as LogLine["fields"] & object }
        : {}),
    };
  }

  async decodeSignal(signal: BufferedSignal): Promise<BufferedSignal> {
    const { payload, ...rest } = signal;
    if (!isEncoded(payload)) return signal;
    try {
      return { ...rest, payload: await this.#decode<unknown>(payload, "payload") };
    } catch (error) {
      // Anyone who may send signals can send a text with the mark of encoded values. It must not block the run.
      if (isForged(error)) return { ...rest, forged: (error as Error).message };
      if (!isCodecError(error)) throw error;
      const message = `signal "${rest.name}" with the ID ${rest.id}: ${error.message}`;
      throw new KonvergeError(error.code, message, { cause: error.cause });
    }
  }

  /** Keeps the parts of a refusal together, because a message may quote the payload. */
  async encodeRefusal(refusal: UpdateRefusal): Promise<UpdateRefusal> {
    return { message: await this.encodeMessage(JSON.stringify(refusal)), issues: [] };
  }

  async decodeRefusal(refusal: UpdateRefusal): Promise<UpdateRefusal> {
    const { message } = refusal;
    if (!isEncoded(message)) return refusal;
    const decoded = await this.decodeMessage(message);
    return isEncoded(decoded) ? refusal : (JSON.parse(decoded) as UpdateRefusal);
  }

  encodeProgress<T extends Reported>(progress: T): Promise<T> {
    return this.#transformProgress(progress, this.#encode);
  }

  async decodeProgress<T extends Reported>(progress: T): Promise<T> {
    return hasEncodedText(progress)
      ? await this.#transformProgress(progress, this.#decode)
      : progress;
  }

  async #transformProgress<T extends Reported>(progress: T, transform: Transform): Promise<T> {
    const { message, heartbeat, tries } = progress;
    if ((message ?? tries ?? heartbeat?.progress) === undefined) return progress;
    const beat = heartbeat && {
      ...heartbeat,
      ...defined({ progress: await transform(heartbeat.progress, "record") }),
    };
    return {
      ...progress,
      ...defined({
        message: await transform(message, "message"),
        tries: await this.#transformTries(tries, transform),
        heartbeat: beat,
      }),
    };
  }

  /** The messages of failed tries may quote values. */
  async #transformTries(
    tries: readonly FailedTry[] | undefined,
    transform: Transform,
  ): Promise<readonly FailedTry[] | undefined> {
    if (tries === undefined) return undefined;
    const each = tries.map(async (failed) => ({
      ...failed,
      message: await transform(failed.message, "message"),
    }));
    return await Promise.all(each);
  }

  async decodeEnd(end: EndedRun): Promise<EndedRun> {
    const { result, error } = end;
    return {
      ...end,
      ...defined({
        result: await this.#decode(result, "result"),
        error: error && (await this.decodeFailure(error)),
      }),
    };
  }

  async decodeSummary<T extends RunSummary>(run: T): Promise<T> {
    const { error, blockedReason, blockedError } = run;
    return {
      ...run,
      ...defined({
        error: error && (await this.decodeFailure(error)),
        blockedReason: await this.#decode(blockedReason, "message"),
        blockedError: blockedError && (await this.decodeFailure(blockedError)),
      }),
    };
  }

  async decodeView(view: RunView): Promise<RunView> {
    const { input, firstInput, result, published } = view;
    return {
      ...(await this.decodeSummary(view)),
      input: await this.#decode(input, "input"),
      ...defined({
        firstInput: await this.#decode(firstInput, "input"),
        result: await this.#decode(result, "result"),
        published: published && (await this.#each(published, this.#decode)),
      }),
    };
  }

  async decodeFailing(failing: Failing): Promise<Failing> {
    return { ...failing, error: await this.decodeFailure(failing.error) };
  }

  async decodeHistory(history: RunHistory): Promise<RunHistory> {
    const { input, parsedInput, result, error, failing, steps, progress } = history;
    return {
      ...history,
      ...defined({
        input: await this.#decode(input, "input"),
        parsedInput: await this.#decode(parsedInput, "input"),
        result: await this.#decode(result, "result"),
        error: error && (await this.decodeFailure(error)),
        failing: failing && (await this.decodeFailing(failing)),
      }),
      steps: await Promise.all(steps.map((record) => this.decodeRecord(record))),
      progress: await Promise.all(progress.map((each) => this.decodeProgress(each))),
    };
  }

  async decodeHeld<T extends Held>(held: T): Promise<T> {
    const [run, parsedInput, failing, steps, progress, signals] = await Promise.all([
      this.decodeView(held.run),
      this.#decode(held.parsedInput, "input"),
      held.failing && this.decodeFailing(held.failing),
      decodeEntries(held.steps, (record) => this.decodeRecord(record)),
      decodeEntries(held.progress, (each) => this.decodeProgress(each)),
      Promise.all(held.signals.map((signal) => this.decodeSignal(signal))),
    ]);
    return {
      ...held,
      run,
      steps,
      progress,
      signals,
      ...defined({ parsedInput, failing }),
      // The limits of a run are about its values, not about their stored form.
      bytes: held.bytes + sizeOf(steps) - sizeOf(held.steps),
    };
  }

  async #each(
    values: Readonly<Record<string, unknown>>,
    transform: Transform,
  ): Promise<Record<string, unknown>> {
    const entries = Object.entries(values).map(
      async ([name, value]) => [name, await transform(value, "published")] as const,
    );
    return Object.fromEntries(await Promise.all(entries));
  }
}

/** @throws KonvergeError `codec_missing`, `codec_failed` */
export async function decodeHistory(
  history: RunHistory,
  codec: PayloadCodec | undefined,
): Promise<RunHistory> {
  const values = codec === undefined ? NO_CODEC : createValueCodec(codec);
  return await new RunValues(values, history).decodeHistory(history);
}

/** Name of the field that has all fields of an encoded line. */
const ENCODED_FIELDS = "encoded";

export async function decodeEntries<T>(
  stored: ReadonlyMap<string, T>,
  decode: (value: T) => Promise<T>,
): Promise<ReadonlyMap<string, T>> {
  const entries = [...stored].map(async ([name, value]) => [name, await decode(value)] as const);
  return new Map(await Promise.all(entries));
}

function sizeOf(steps: ReadonlyMap<string, StepRecord>): number {
  return Buffer.byteLength(JSON.stringify([...steps.values()]));
}
