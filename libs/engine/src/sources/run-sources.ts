import { ensureError, isKonvergeError, sleepMs } from "@konverge/core";
import type { SourceStore, WorkQueue } from "@konverge/queue";
import type { SourceMetrics } from "@konverge/telemetry";
import type { Controller } from "../define/define-controller.ts";
import type { EventSource } from "../define/event-source.ts";
import type { Log } from "../define/log.ts";
import { insist, untilLost } from "./redis-loss.ts";
import { runInbound } from "./run-inbound.ts";
import { runPoll } from "./run-poll.ts";
import { runStream } from "./run-stream.ts";
import { backOff, SourceFencedError, type SourceContext } from "./source-context.ts";
import { SourceReporter } from "./source-reporter.ts";

export interface RunSourcesOptions {
  readonly controller: Controller;
  readonly queue: WorkQueue;
  readonly store: SourceStore;
  readonly metrics: SourceMetrics;
  readonly log: Log;
  readonly workerId: string;
  /** Aborted when the leadership ends. */
  readonly signal: AbortSignal;
  /** Interval of the check for data loss, in ms. Default 5 s. */
  readonly checkMs?: number;
}

/** Time after which a fenced source is claimed again, in ms: by then the leadership of one of the two has ended. */
const FENCED_MS = 15_000;
const RETRY_MS = 1_000;

/**
 * Runs the event sources of a controller while this process leads it. If Redis may have lost data, they continue from the
 * stored state. Rejects when the signal is aborted.
 */
export async function runSources(options: RunSourcesOptions): Promise<void> {
  const { controller, queue, log, signal, checkMs } = options;
  const reporters = new Map(
    controller.eventSources.map((source) => [source, new SourceReporter({ ...options, source })]),
  );
  const unobserve = [...reporters].map(([source, reporter]) =>
    options.metrics.observeSource(
      { controller: controller.name, source: source.name },
      () => reporter,
    ),
  );
  signal.addEventListener("abort", () => unobserve.forEach((end) => end()), { once: true });
  const incarnation = () => queue.incarnation();
  const onError = (err: Error) => log.debug({ err }, "redis not available for sources");
  for (;;) {
    const known = await insist(incarnation, { signal, onError, retryMs: RETRY_MS });
    const over = new AbortController();
    const round = AbortSignal.any([signal, over.signal]);
    const running = [...reporters].map(([source, reporter]) =>
      runSource({ ...options, source, reporter, signal: round }),
    );
    try {
      await untilLost(known, { incarnation, checkMs }, round);
    } finally {
      over.abort();
      await Promise.allSettled(running);
    }
  }
}

/** Runs a source until the signal is aborted. */
async function runSource(context: SourceContext & Pick<RunSourcesOptions, "log">): Promise<void> {
  const { source, controller, store, reporter, signal, log } = context;
  while (!signal.aborted) {
    try {
      const place = { controller: controller.name, source: source.name };
      await run(context, source, () => store.claim(place));
      // The end of a stream.
      await sleepMs(RETRY_MS, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof SourceFencedError) {
        log.info({ source: source.name }, "source claimed by another worker");
        await sleepMs(FENCED_MS, signal).catch(() => undefined);
        continue;
      }
      const isAway = isKonvergeError(error) && error.code === "redis_unavailable";
      if (isAway) log.debug({ err: ensureError(error) }, "redis not available for sources");
      else reporter.failed(error);
      await backOff(isAway ? 1 : reporter.failures, signal).catch(() => undefined);
    }
  }
}

async function run(
  context: SourceContext,
  source: EventSource,
  claim: () => ReturnType<SourceStore["claim"]>,
): Promise<void> {
  switch (source.kind) {
    case "poll":
      return await runPoll({ ...context, source }, await claim());
    case "stream":
      return await runStream({ ...context, source }, await claim());
    case "inbound":
      return await runInbound({ ...context, source });
  }
}
