import {
  defined,
  ensureError,
  LOG_LEVELS,
  logFieldsText,
  parseLogFields,
  readLogCall,
} from "@konverge/core";
import { assertJson } from "../define/json-value.ts";
import type { Log } from "../define/log.ts";
import type { LogLine } from "../store/run-record.ts";

/** Longest stored message and fields, in characters. */
const MAX_MESSAGE = 500;
const MAX_FIELDS = 500;
/** Lines wait this long for others, in ms. */
const STORE_AFTER_MS = 1_000;
/** Most lines that wait; the oldest are dropped. */
const MAX_WAITING = 200;

export interface RunLogOptions {
  /** Lines of the function, not of bodies, that earlier executions have stored. A replay logs them again. */
  readonly logged: number;
  readonly nowMs: () => number;
  readonly append: (lines: readonly LogLine[], logged: number) => Promise<void>;
  /** Replaces secret values in lines of the function. */
  readonly scrub: (text: string) => string;
  /** Called with each new line. */
  readonly onLine: (line: LogLine) => void;
}

/** The origin of a line in a body. */
export interface LogOrigin {
  readonly step: string;
  readonly attempt?: number;
  /** Replaces secret values. */
  readonly scrub?: (text: string) => string;
}

/** The log of a run. Lines are stored once a second and at the end of the execution, not with records. */
export class RunLog {
  readonly #options: RunLogOptions;
  #waiting: LogLine[] = [];
  /** Lines of the function in this execution. */
  #calls = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #storing: Promise<void> = Promise.resolve();

  constructor(options: RunLogOptions) {
    this.#options = options;
  }

  /** Returns a logger. `originOf` is asked for each line; without an origin, the line is of the function. */
  logger(originOf: () => LogOrigin | undefined, bindings: object = {}): Log {
    const [debug, info, warn, error] = LOG_LEVELS.map((level) => (given: object, text: string) => {
      const { fields, message } = readLogCall(given, text);
      this.#log({ level, fields: { ...bindings, ...fields }, message, origin: originOf() });
    }) as [Log["debug"], Log["info"], Log["warn"], Log["error"]];
    const child = (more: Record<string, unknown>) =>
      this.logger(originOf, { ...bindings, ...more });
    return { debug, info, warn, error, child };
  }

  /** Stores the waiting lines, after those that are being stored. Errors are ignored: no run fails for its log. */
  store(): Promise<void> {
    this.#storing = this.#storing.then(() => this.#storeWaiting());
    return this.#storing;
  }

  async #storeWaiting(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#waiting;
    if (lines.length === 0) return;
    this.#waiting = [];
    const logged = Math.max(this.#calls, this.#options.logged);
    await this.#options.append(lines, logged).catch(() => undefined);
  }

  /** Stops storing lines. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #log({
    level,
    fields,
    message,
    origin,
  }: Pick<LogLine, "level" | "message"> & {
    readonly fields: object;
    readonly origin: LogOrigin | undefined;
  }): void {
    if (origin === undefined) {
      this.#calls += 1;
      if (this.#calls <= this.#options.logged) return;
    }
    const { step, attempt, scrub = this.#options.scrub } = origin ?? {};
    const line: LogLine = {
      atMs: this.#options.nowMs(),
      level,
      message: scrub(message).slice(0, MAX_MESSAGE),
      ...defined({ step, attempt }),
      ...fieldsOf(fields, scrub),
    };
    this.#options.onLine(line);
    if (this.#isClosed) return;
    this.#waiting.push(line);
    if (this.#waiting.length > MAX_WAITING) this.#waiting.shift();
    this.#timer ??= setTimeout(() => void this.store(), STORE_AFTER_MS).unref();
  }
}

/** The fields as they are stored: plain JSON without Secrets, of limited size. Errors become text. */
function fieldsOf(
  fields: object,
  scrub: (text: string) => string,
): { readonly fields?: Record<string, unknown> } {
  const entries = Object.entries(fields).map(([name, value]) => [
    name,
    value instanceof Error ? `${value.name}: ${value.message}` : (value as unknown),
  ]);
  if (entries.length === 0) return {};
  const plain = Object.fromEntries(entries) as Record<string, unknown>;
  try {
    assertJson(plain, "the fields");
    const text = logFieldsText(plain);
    return text === undefined ? {} : { fields: parseLogFields(scrub(text), MAX_FIELDS) };
  } catch (error) {
    return { fields: { omitted: ensureError(error).message.slice(0, MAX_FIELDS) } };
  }
}
