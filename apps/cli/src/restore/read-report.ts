import type { QueueAccess } from "@konverge/api";
import type { Settings } from "@konverge/contracts";
import { defined, RUN_STATUSES, type RunStatus, isoTime } from "@konverge/core";
import type { GuardView } from "@konverge/guard";
import type { Pause, RestoreState } from "@konverge/queue";
import { redisOfCommand } from "../process/redis-of-command.ts";

/** Most runs listed per workflow. */
const MOST_LISTED = 100;
const ENDED: readonly RunStatus[] = ["done", "failed", "cancelled"];
const LIVE = RUN_STATUSES.filter((status) => !ENDED.includes(status));

/** The work that the data in Redis would do. */
export interface RestoreReport {
  readonly clusters: readonly ClusterReport[];
  readonly tokens: RestoreState & {
    readonly items: readonly {
      readonly name: string;
      readonly role: string;
      readonly createdAt: string;
    }[];
  };
}

export interface ClusterReport extends RestoreState {
  readonly cluster: string;
  readonly controllers: readonly {
    readonly name: string;
    /** Requests that wait, are retried later, or were running at the time of the backup. */
    readonly waiting: number;
    readonly deadLettered: number;
    readonly pauses: readonly Pause[];
  }[];
  readonly workflows: readonly {
    readonly name: string;
    readonly live: number;
    /** The newest live runs, at most 100. */
    readonly runs: readonly {
      readonly id: string;
      readonly status: RunStatus;
      /** Recorded steps; later ones may have run and would run again. */
      readonly steps: number;
      readonly createdAt: string;
    }[];
  }[];
  readonly schedules: readonly {
    readonly name: string;
    /** The first time that has no run in this Redis. */
    readonly nextAt: string;
    /** True if a run starts as soon as the runs are accepted. */
    readonly isDue: boolean;
  }[];
  readonly guard?: Pick<GuardView["breaker"], "state" | "isolated"> &
    Pick<GuardView["rate"], "override">;
}

/** Reads what would happen if the held state was accepted. @throws KonvergeError `redis_unavailable` */
export async function readRestoreReport(
  access: QueueAccess,
  { redisUrl, prefix }: Pick<Settings, "redisUrl" | "prefix">,
  names: readonly string[],
): Promise<RestoreReport> {
  const { openGuardControl } = await import("@konverge/guard");
  await using guards = openGuardControl({ redis: redisOfCommand(redisUrl), prefix });
  const clusters = await Promise.all(
    names.map(async (cluster): Promise<ClusterReport> => {
      const guard = await guards.read(cluster);
      return {
        cluster,
        ...(await access.restore.read(cluster)),
        controllers: await readControllers(access, cluster),
        ...(await readRuns(access, cluster)),
        ...(guard && {
          guard: {
            state: guard.breaker.state,
            ...defined({ isolated: guard.breaker.isolated, override: guard.rate.override }),
          },
        }),
      };
    }),
  );
  const [state, tokens] = await Promise.all([access.restore.readTokens(), access.tokens.list()]);
  const items = tokens.map(({ name, role, createdAt }) => ({ name, role, createdAt }));
  return { clusters, tokens: { ...state, items } };
}

async function readControllers(
  access: QueueAccess,
  cluster: string,
): Promise<ClusterReport["controllers"]> {
  const controllers = await access.controllers(cluster);
  return await Promise.all(
    controllers.map(async ({ name }) => {
      const { queue } = await access.find(cluster, name);
      const [counts, backlog, pauses] = await Promise.all([
        queue.counts(),
        queue.backlog(),
        queue.control.listPauses(),
      ]);
      const waiting = counts.waiting + counts.active + counts.delayed;
      return { name, waiting, deadLettered: backlog.deadLettered, pauses };
    }),
  );
}

async function readRuns(
  access: QueueAccess,
  cluster: string,
): Promise<Pick<ClusterReport, "workflows" | "schedules">> {
  const { workflows: opened, announced } = await access.runs(cluster);
  const workflows = await Promise.all(
    [...announced.keys()].map(async (name) => {
      const counts = await opened.counts(name);
      const page = await opened.list(name, { limit: MOST_LISTED, filter: { statuses: LIVE } });
      const runs = await Promise.all(
        page.runs.map(async ({ id, status, createdAtMs }) => {
          const overview = await opened.peek({ workflow: name, id });
          return { id, status, steps: overview?.steps ?? 0, createdAt: isoTime(createdAtMs) };
        }),
      );
      return { name, live: LIVE.reduce((sum, status) => sum + counts[status], 0), runs };
    }),
  );
  const listed = await opened.schedules.list();
  const schedules = listed
    .filter(({ paused }) => paused === undefined)
    .map(({ name, nextMs }) => ({ name, nextAt: isoTime(nextMs), isDue: nextMs <= Date.now() }));
  return { workflows, schedules };
}
