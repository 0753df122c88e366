import { defined, ensureError } from "@konverge/core";
import type { SourceReport, SourceStore } from "@konverge/queue";
import type { SourceMetrics } from "@konverge/telemetry";
import type { Controller } from "../define/define-controller.ts";
import type { EventSource } from "../define/event-source.ts";
import type { Log } from "../define/log.ts";
import { errorOfThrown } from "../define/thrown-error.ts";

/** Time between two reports of an unchanged state, in ms. */
const REPORT_EVERY_MS = 5_000;
const MAX_ERROR = 500;

export interface SourceReporterOptions {
  readonly controller: Pick<Controller, "name">;
  readonly source: Pick<EventSource, "kind" | "name">;
  readonly store: Pick<SourceStore, "report">;
  readonly metrics: SourceMetrics;
  readonly log: Log;
  readonly workerId: string;
}

/** Logs, counts and stores the state of a source. */
export class SourceReporter {
  readonly #options: SourceReporterOptions;
  readonly #place: { readonly controller: string; readonly source: string };
  #failures = 0;
  #failingSinceMs: number | undefined;
  #error: string | undefined;
  #succeededAtMs: number | undefined;
  #waiting = 0;
  /** The time of the oldest event that is not requested. */
  #behindSinceMs: number | undefined;
  #storedAtMs = -Infinity;

  constructor(options: SourceReporterOptions) {
    this.#options = options;
    this.#place = { controller: options.controller.name, source: options.source.name };
  }

  /** Consecutive failures. */
  get failures(): number {
    return this.#failures;
  }

  /** Reports objects that were requested. */
  requested(objects: number): void {
    this.#options.metrics.sourceRequested(this.#place, objects);
  }

  /** Age of the oldest event that is not requested; for a poll, of the last complete list. */
  get lagMs(): number {
    if (this.#behindSinceMs !== undefined) return performance.now() - this.#behindSinceMs;
    return this.#failingSinceMs === undefined ? 0 : Date.now() - this.#failingSinceMs;
  }

  /** Reports the number of events that are not requested, and the time of the oldest, by `performance.now()`. */
  behind(waiting: number, sinceMs: number | undefined): void {
    this.#waiting = waiting;
    this.#behindSinceMs = sinceMs;
    this.#store();
  }

  succeeded(): void {
    this.#options.metrics.sourceRan(this.#place, "success");
    this.#succeededAtMs = Date.now();
    const isRecovered = this.#failures > 0;
    this.#failures = 0;
    this.#error = undefined;
    this.#failingSinceMs = undefined;
    if (isRecovered) this.#options.log.info({ source: this.#place.source }, "source recovered");
    this.#store(isRecovered);
  }

  /** @param failures consecutive failures; default: one more */
  failed(thrown: unknown, failures: number = this.#failures + 1): void {
    const { name, message } = errorOfThrown(thrown);
    const { log, metrics } = this.#options;
    metrics.sourceRan(this.#place, "error");
    const level = this.#failures === 0 ? "warn" : "debug";
    this.#failures = failures;
    this.#failingSinceMs ??= Date.now();
    this.#error = message.slice(0, MAX_ERROR);
    const fields = { source: this.#place.source, failures, err: { type: name, message } };
    log[level](fields, "source failed, retrying");
    this.#store(true);
  }

  #store(isChange = false): void {
    const now = performance.now();
    if (!isChange && now - this.#storedAtMs < REPORT_EVERY_MS) return;
    this.#storedAtMs = now;
    const { store, source, workerId, log } = this.#options;
    const report: SourceReport = {
      ...this.#place,
      kind: source.kind,
      worker: workerId,
      atMs: Date.now(),
      failures: this.#failures,
      waiting: this.#waiting,
      lagMs: Math.round(this.lagMs),
      ...defined({
        error: this.#error,
        failingSinceMs: this.#failingSinceMs,
        succeededAtMs: this.#succeededAtMs,
      }),
    };
    // The next report repeats it.
    store.report(report).catch((error: unknown) => {
      this.#storedAtMs = -Infinity;
      log.debug({ err: ensureError(error) }, "state of a source not stored");
    });
  }
}
