import { logFieldsText, parseLogFields, type LogLevel } from "@konverge/core";
import type { AttemptSecrets } from "@konverge/kube";
import type { AttemptRecord } from "@konverge/records";

/** Lines in memory; the oldest are dropped. */
const MAX_LINES = 50;
/** Longest stored message and fields, in characters. */
const MAX_TEXT = 500;
/** Longest text in memory, in characters. */
const MAX_RAW = 10_000;
/** The lines have room in a record beside everything else. */
const MAX_BYTES = 4_000;

/** Lines of a running attempt wait this long for others, in ms. */
const KEEP_AFTER_MS = 1_000;

interface Line {
  readonly atMs: number;
  readonly level: LogLevel;
  readonly message: string;
  /** As JSON. */
  readonly fields: string | undefined;
}

type KeptLog = Required<Pick<AttemptRecord, "log">> & Pick<AttemptRecord, "logOmitted">;

export interface AttemptLogOptions {
  /** Values that the attempt has read in sensitive objects. */
  readonly secrets: AttemptSecrets;
  /** Stores the lines of a running attempt as JSON. Default: they are lost with the worker. */
  readonly keep: ((lines: string) => Promise<void>) | undefined;
}

/**
 * The last log lines of an attempt. They are stored with its record, at no extra call. Those of an attempt that runs on are
 * stored a second later, so that they survive its worker.
 */
export class AttemptLog {
  readonly #options: AttemptLogOptions;
  readonly #lines: Line[] = [];
  /** Dropped lines; of level debug, and others. */
  readonly #dropped = { debug: 0, others: 0 };
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: AttemptLogOptions) {
    this.#options = options;
  }

  note(level: LogLevel, fields: object, message: string): void {
    if (this.#isClosed) return;
    const text = logFieldsText(fields);
    this.#lines.push({
      atMs: Date.now(),
      level,
      message: bounded(String(message)),
      fields: text === undefined ? undefined : bounded(text),
    });
    if (this.#lines.length > MAX_LINES) {
      const dropped = this.#lines.shift()?.level;
      this.#dropped[dropped === "debug" ? "debug" : "others"] += 1;
    }
    this.#timer ??= setTimeout(() => this.#keep(), KEEP_AFTER_MS).unref();
  }

  /** Returns the lines for the record; later ones are dropped. Undefined without lines. */
  end(hasFailed: boolean): KeptLog | undefined {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    return this.#take(hasFailed);
  }

  #keep(): void {
    this.#timer = undefined;
    const { log = [] } = this.#take(true) ?? {};
    // An attempt does not fail for its log.
    this.#options.keep?.(JSON.stringify(log)).catch(() => undefined);
  }

  /**
   * Returns the last lines that fit. Lines of level debug are kept to explain a failure only, because they would shorten the
   * history of all objects.
   */
  #take(hasFailed: boolean): KeptLog | undefined {
    const lines = hasFailed ? this.#lines : this.#lines.filter(({ level }) => level !== "debug");
    const log: KeptLog["log"] = [];
    let bytes = 0;
    for (const line of lines.toReversed()) {
      const kept = keptLine(line, this.#options.secrets);
      bytes += Buffer.byteLength(JSON.stringify(kept)) + 1;
      if (bytes > MAX_BYTES) break;
      log.unshift(kept);
    }
    if (log.length === 0) return undefined;
    const dropped = this.#dropped.others + (hasFailed ? this.#dropped.debug : 0);
    const omitted = dropped + lines.length - log.length;
    return { log, ...(omitted === 0 ? {} : { logOmitted: omitted }) };
  }
}

function keptLine({ atMs, level, message, fields }: Line, secrets: AttemptSecrets) {
  return {
    at: new Date(atMs).toISOString(),
    level,
    message: secrets.scrub(message).slice(0, MAX_TEXT),
    ...(fields === undefined ? {} : { fields: parseLogFields(secrets.scrub(fields), MAX_TEXT) }),
  };
}

/** Omits a long text: in a truncated one, a part of a secret would not be found. */
function bounded(text: string): string {
  return text.length <= MAX_RAW ? text : JSON.stringify({ omitted: `${text.length} characters` });
}
