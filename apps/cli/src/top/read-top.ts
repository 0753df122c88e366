import type { Run, Worker } from "@konverge/client";
import type { GuardView, KeyItem, Overview } from "@konverge/contracts";
import type { Asking } from "../ask/run-with-client.ts";

export const TOP_VIEWS = ["controllers", "problems", "objects", "runs", "workers"] as const;
export type TopView = (typeof TOP_VIEWS)[number];

/** The data of the views. The lists are filled only for their own view. */
export interface TopData {
  readonly atMs: number;
  readonly overview: Overview;
  readonly guards: readonly GuardView[];
  readonly workers: readonly Worker[];
  /** Objects that are dead-lettered, back off or are paused. */
  readonly objects: readonly KeyItem[];
  /** Blocked runs and the newest ones. */
  readonly runs: readonly Run[];
}

const LIMIT = 100;
const TROUBLED = ["deadLettered", "backoff", "paused"] as const;

/** Reads the data of a view. */
export async function readTop(
  { client, cluster }: Pick<Asking, "client" | "cluster">,
  {
    view,
    controller,
    signal,
  }: { view: TopView; controller?: string | undefined; signal: AbortSignal },
): Promise<TopData> {
  const read = { signal };
  const [overview, guards, workers, objects, runs] = await Promise.all([
    client.overview({ cluster }, read),
    client.guards.list({}, read),
    client.workers.list({ cluster }, read),
    view === "objects" ? readObjects() : [],
    view === "runs" ? readRuns() : [],
  ]);
  const own = guards.items.filter((guard) => guard.cluster === cluster);
  return { atMs: Date.now(), overview, guards: own, workers: workers.items, objects, runs };

  async function readObjects(): Promise<KeyItem[]> {
    const of = controller === undefined ? {} : { controller };
    const pages = await Promise.all(
      TROUBLED.map((phase) =>
        client.objects.list({ cluster, phase, limit: LIMIT, ...of }, read).page(),
      ),
    );
    return pages.flatMap(({ items }) => items);
  }

  async function readRuns(): Promise<Run[]> {
    const [blocked, newest] = await Promise.all([
      client.runs.list({ cluster, status: "blocked", limit: LIMIT }, read).page(),
      client.runs.list({ cluster, limit: LIMIT }, read).page(),
    ]);
    const ids = new Set(blocked.items.map(({ id }) => id));
    return [...blocked.items, ...newest.items.filter(({ id }) => !ids.has(id))];
  }
}
