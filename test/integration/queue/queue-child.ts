/** A worker in a separate process, to be killed or stopped by a test. Prints events as lines of JSON. */
import { createWorkQueue, type AttemptLease } from "@konverge/queue";

const { url, prefix, leaseMs, workerId, mode } = JSON.parse(process.argv[2] ?? "{}") as ChildConfig;

export interface ChildConfig {
  readonly url: string;
  readonly prefix: string;
  readonly leaseMs: number;
  readonly workerId: string;
  /** Behavior of the handler: kill its own process, never return, or return `done` once its signal is aborted. */
  readonly mode: "crash" | "hang" | "untilAborted";
}

const say = (line: Record<string, unknown>) => process.stdout.write(`${JSON.stringify(line)}\n`);

const queue = createWorkQueue({
  redis: { url },
  prefix,
  leaseMs,
  controller: "node-pool",
  cluster: "default",
});
const worker = queue.work({
  workerId,
  handle: async (attempt) => {
    say({ started: attempt.key.name, epoch: attempt.epoch });
    if (mode === "crash") process.kill(process.pid, "SIGKILL");
    await aborted(attempt);
    if (mode === "hang") await new Promise(() => undefined);
    return { outcome: { kind: "requeueAfter", afterMs: 1 } };
  },
  onClosed: (attempt, _end, { fenced }) => say({ closed: attempt.key.name, fenced }),
  onError: (error) => process.stderr.write(`${error.message}\n`),
});

process.once("SIGTERM", () => {
  const askedMs = performance.now();
  void worker
    .stop({ graceMs: 100 })
    .then(() => queue.close())
    .then(() => say({ stoppedAfterMs: Math.round(performance.now() - askedMs) }));
});

async function aborted({ signal }: AttemptLease): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  say({ aborted: String(signal.reason) });
}
