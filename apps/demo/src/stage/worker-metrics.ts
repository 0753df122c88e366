/** The sums of the series of one metric, over labels and workers. */
export interface WorkerTotals {
  readonly reconciles: number;
  readonly writes: number;
  readonly conflicts: number;
  readonly jobRetries: number;
  /** Attempts that ended for good with an error. */
  readonly gaveUp: number;
  readonly apiCalls: number;
  /** Calls that the guard let through, and that it put off. */
  readonly permits: number;
  readonly deferred: number;
}

const NAMES = {
  reconciles: "konverge_reconcile_total",
  writes: "konverge_writes_total",
  conflicts: "konverge_conflicts_total",
  jobRetries: "konverge_workqueue_retries_total",
  gaveUp: "konverge_terminal_reconcile_errors_total",
  apiCalls: "konverge_attempt_api_calls_total",
  permits: "konverge_guard_admitted_calls_total",
  deferred: "konverge_guard_deferred_calls_total",
} as const;

/** One series of a worker's `/metrics`, with this label; 0 when there is none. */
export async function readWorkerGauge(
  url: string,
  name: string,
  { cluster }: { readonly cluster: string },
): Promise<number> {
  const lines = (await readMetrics(url)).split("\n");
  const own = lines.filter((line) => line.includes(`cluster="${cluster}"`));
  return sumSeries(own.join("\n"), name);
}

async function readMetrics(url: string): Promise<string> {
  return await (await fetch(url, { signal: AbortSignal.timeout(5_000) })).text();
}

/** Reads the workers' `/metrics` and adds them up. A worker that was killed has no say. */
export async function readWorkerTotals(urls: readonly string[]): Promise<WorkerTotals> {
  const texts = await Promise.all(urls.map(readMetrics));
  const sum = (name: string) => texts.reduce((total, text) => total + sumSeries(text, name), 0);
  return {
    reconciles: sum(NAMES.reconciles),
    writes: sum(NAMES.writes),
    conflicts: sum(NAMES.conflicts),
    jobRetries: sum(NAMES.jobRetries),
    gaveUp: sum(NAMES.gaveUp),
    apiCalls: sum(NAMES.apiCalls),
    permits: sum(NAMES.permits),
    deferred: sum(NAMES.deferred),
  };
}

/** Adds up all series of `name` in the Prometheus text format. */
export function sumSeries(text: string, name: string): number {
  let total = 0;
  for (const line of text.split("\n")) {
    if (!line.startsWith(name)) continue;
    const rest = line.slice(name.length);
    if (rest.startsWith("{") || rest.startsWith(" "))
      total += Number(rest.slice(rest.lastIndexOf(" ")));
  }
  return total;
}
