import type { Client } from "@konverge/client";
import type { PayloadCodec, RunStatus } from "@konverge/core";
import type { Config } from "@konverge/worker";
import {
  formatRunId,
  replayHistory,
  type AnyWorkflow,
  type ReplayResult,
  type RunHistory,
} from "@konverge/workflow";

/** Statuses of runs that have not ended. Most runs wait, so that few change their status while they are read. */
const LIVE = [
  "waiting",
  "queued",
  "blocked",
  "paused",
  "pausing",
  "compensating",
  "running",
] as const;
const PAGE = 100;
/** Runs that are named for each reason. */
const MOST_NAMED = 3;
/** Time after which a replay stops if the code awaits something other than a verb. */
const STALL_TIMEOUT_MS = 2_000;

interface Replayed {
  readonly workflow: AnyWorkflow;
  readonly codec: PayloadCodec | undefined;
}

/** Runs that the code does not fit, by the difference. */
interface Misfit {
  readonly workflow: string;
  readonly reason: string;
  /** False if the runs would continue with a warning. */
  readonly blocks: boolean;
  runs: number;
  /** Ids of the first ones. */
  readonly examples: string[];
}

export interface DeployCheck {
  /** Runs that the code continues. */
  readonly fit: number;
  /** Reasons that would block come first, then those with more runs. */
  readonly misfits: readonly Misfit[];
}

/**
 * Replays the live runs of a cluster with other code, page by page, without executing a body. A run that changes its status meanwhile is
 * counted once, or not at all if it was read in neither status.
 */
export async function checkLiveRuns(
  client: Pick<Client, "overview" | "runs">,
  cluster: string,
  { workflows, codec }: Pick<Config, "workflows"> & { readonly codec?: PayloadCodec },
): Promise<DeployCheck> {
  const found = new Map<string, Misfit>();
  let fit = 0;
  const note = (
    about: Pick<Misfit, "workflow" | "reason" | "blocks">,
    runs: number,
    id?: string,
  ) => {
    const key = JSON.stringify([about.workflow, about.reason]);
    const misfit = found.get(key) ?? { ...about, runs: 0, examples: [] };
    misfit.runs += runs;
    if (id !== undefined && misfit.examples.length < MOST_NAMED) misfit.examples.push(id);
    found.set(key, misfit);
  };
  for (const { name, runs } of (await client.overview({ cluster })).workflows) {
    const live = LIVE.reduce((sum, status) => sum + (runs[status] ?? 0), 0);
    if (live === 0 || workflows.some((workflow) => workflow.name === name)) continue;
    const reason = "the configuration has no such workflow";
    note({ workflow: name, reason, blocks: true }, live);
  }
  for (const workflow of workflows) {
    const { name } = workflow;
    for await (const [id, result] of replayLive(client, cluster, { workflow, codec })) {
      if (result.fits) fit += 1;
      else {
        const { reason, blocks } = result;
        note({ workflow: name, reason, blocks }, 1, formatRunId({ workflow: name, id }, cluster));
      }
    }
  }
  const misfits = [...found.values()].toSorted(
    (a, b) => Number(b.blocks) - Number(a.blocks) || b.runs - a.runs,
  );
  return { fit, misfits };
}

async function* replayLive(
  client: Pick<Client, "runs">,
  cluster: string,
  { workflow, codec }: Replayed,
): AsyncGenerator<readonly [string, ReplayResult]> {
  const seen = new Set<string>();
  for (const status of LIVE) {
    const query = { cluster, workflow: workflow.name, status, limit: PAGE };
    let next: string | undefined;
    let reading = client.runs.histories(query).page();
    do {
      const page = await reading;
      next = page.next;
      // The next page is read while this one is replayed.
      if (next !== undefined) {
        reading = client.runs.histories({ ...query, cursor: next }).page();
        // Its failure is thrown when it is awaited.
        reading.catch(() => undefined);
      }
      const fresh = page.items.filter((item) => !seen.has(item.id) && isLive(item.status));
      for (const { id } of fresh) seen.add(id);
      yield* await Promise.all(
        fresh.map(async (item) => {
          const history = item as unknown as RunHistory;
          return [item.id, await replayTwice({ workflow, codec }, history)] as const;
        }),
      );
    } while (next !== undefined);
  }
}

/** Replays again before a run is reported: the first replay may have loaded modules of the code. */
async function replayTwice(
  { workflow, codec }: Replayed,
  history: RunHistory,
): Promise<ReplayResult> {
  const options = { stallTimeoutMs: STALL_TIMEOUT_MS, codec };
  const first = await replayHistory(workflow, history, options);
  return first.fits ? first : await replayHistory(workflow, history, options);
}

function isLive(status: RunStatus): boolean {
  return LIVE.some((each) => each === status);
}
