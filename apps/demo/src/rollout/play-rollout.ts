import type { Client } from "@konverge/client";
import type { RunDetail } from "@konverge/contracts";
import { createWorkQueue } from "@konverge/queue";
import { keyOfRun, queueOfWorkflow } from "@konverge/workflow";
import { pollUntil } from "../stage/poll-until.ts";
import type { DemoProgress } from "../stage/progress.ts";
import { killInWrite, type DemoWorker } from "./kill-in-write.ts";
import { APP, NEW_IMAGE, readApp } from "./rollout-app.ts";
import type { Execution } from "./run-timeline.ts";
import type { TwoClusters } from "./two-clusters.ts";
import { redisOfDemo } from "../stage/redis-of-demo.ts";

const WORKFLOW = "fleet-rollout";
/** The cluster whose workers execute the run. */
export const HOME = "east";
const ID = "web-2";
/** The lease of a dead worker lasts ten of these intervals. */
const RUN_MS = 90_000;

export interface PlayOptions {
  readonly clusters: TwoClusters;
  readonly workers: readonly DemoWorker[];
  readonly client: Client;
  readonly redisUrl: string;
  readonly installation: string;
  readonly soakSeconds: number;
  readonly progress: Pick<DemoProgress, "print" | "begin" | "update">;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

export interface PlayedRollout {
  readonly run: RunDetail;
  readonly killed: DemoWorker;
  readonly executions: readonly Execution[];
}

/** Starts the run, kills a worker in the middle of its first write, approves the second cluster, and waits for the end. */
export async function playRollout(options: PlayOptions): Promise<PlayedRollout> {
  const { clusters, workers, client, signal } = options;
  const { print, begin, update } = options.progress;
  const { east } = clusters;
  // The API server applies the first upgrade and never sends the answer.
  east.server.inject({
    verbs: ["patch"],
    resources: ["deployments.apps"],
    userAgent: "konverge-worker",
    count: 1,
    effect: { kind: "silence" },
  });
  const { id } = await client.runs.start({
    workflow: WORKFLOW,
    cluster: HOME,
    id: ID,
    key: `${WORKFLOW}:${APP.name}`,
    by: "demo",
    input: {
      ...APP,
      image: NEW_IMAGE,
      clusters: ["east", "west"],
      soakSeconds: options.soakSeconds,
    },
  });
  print(`run ${id} rolls out ${NEW_IMAGE} to east and west`);

  const killed = await killInWrite(workers, {
    cluster: HOME,
    isWritten: async () => (await readApp(east.client)).rollouts > 0,
    signal,
  });
  print(
    `east has the new image; ${killed.name} (pid ${killed.process.pid}) was killed with -9 before it could record it`,
  );

  begin("the rollout continues");
  const reported = new Set<string>();
  let isApproved = false;
  let doing = "";
  let run = await client.runs.get(id);
  await pollUntil(
    "the run ends",
    async () => {
      run = await client.runs.get(id);
      for (const { name, error } of run.steps) {
        if (reported.has(name)) continue;
        reported.add(name);
        print(error === undefined ? `recorded: ${name}` : `failed: ${name}: ${error.message}`);
      }
      if (!isApproved && run.waits?.some(({ kind }) => kind === "signal") === true) {
        isApproved = true;
        await client.runs.signal(id, {
          name: "approve west",
          payload: { approved: true },
          by: "demo",
        });
        print("the run waits for an approval of west; the demo approves it");
      }
      const now = doingOf(run, killed);
      if (now !== doing) update(now);
      doing = now;
      return run.endedAt !== undefined;
    },
    { signal, deadlineMs: RUN_MS, everyMs: 200 },
  );
  return { run, killed, executions: await readExecutions(options) };
}

/** A description of the wait. */
function doingOf({ steps, waits = [], endedAt }: RunDetail, killed: DemoWorker): string {
  if (endedAt !== undefined) return "ended";
  const [wait] = waits;
  if (wait !== undefined) return `waits for ${wait.kind} "${wait.step}"`;
  return steps.some(({ workerLost }) => workerLost === true)
    ? "works"
    : `the other worker takes over when the lease of ${killed.name} expires, within 20 s`;
}

async function readExecutions({
  redisUrl,
  installation,
  workers,
}: PlayOptions): Promise<Execution[]> {
  const queue = createWorkQueue({
    redis: redisOfDemo(redisUrl),
    prefix: installation,
    cluster: HOME,
    controller: queueOfWorkflow(WORKFLOW),
  });
  try {
    const attempts = await queue.listAttempts(keyOfRun({ workflow: WORKFLOW, id: ID }, HOME));
    return attempts.map(({ worker, outcome, startedAtMs, endedAtMs }) => ({
      // A worker's id ends with its process id.
      worker: workers.find(({ process }) => worker.endsWith(`-${process.pid}`))?.name ?? worker,
      lost: outcome === "lost",
      startedAtMs,
      endedAtMs,
    }));
  } finally {
    await queue.close();
  }
}
