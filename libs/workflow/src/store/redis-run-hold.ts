import type { RedisRunStoreOptions } from "./redis-run-store-options.ts";
import type { RunNames } from "./run-names.ts";
import { markStateOf } from "./mark-state.ts";
import type { MarkState } from "./run-store.ts";
import { readSteps } from "./run-fields.ts";
import { isEndStatus, type RunStatus, type RunStore } from "./run-store.ts";

/** What Kubernetes verbs ask of the store. */
export function createRedisRunHold(
  { call, prefix, cluster }: RedisRunStoreOptions,
  of: (workflow: string) => RunNames,
): Pick<RunStore, "scope" | "installation" | "holds" | "statesOf"> {
  let installation: Promise<string> | undefined;
  const findInstallation = async (): Promise<string> => {
    const { installation: name } = of("");
    await call((redis) => redis.setnx(name, crypto.randomUUID()));
    return (await call((redis) => redis.get(name))) ?? (await findInstallation());
  };

  return {
    scope: `${prefix}/${cluster}`,
    async installation() {
      const finding = (installation ??= findInstallation());
      // A failure is not remembered.
      finding.catch(() => (installation = undefined));
      return await finding;
    },

    async holds({ workflow, id, epoch, run }) {
      const name = of(workflow).run(id);
      const [current, createdAt, status] = await call((redis) =>
        redis.hmget(name, "epoch", "createdAt", "status"),
      );
      const isSame = Number(current) === epoch && Number(createdAt) === run.createdAtMs;
      return isSame && !hasEnded(status);
    },

    async statesOf(marks) {
      return await Promise.all(
        marks.map(async ({ workflow, id, createdAtMs, step }): Promise<MarkState> => {
          const names = of(workflow);
          const [[createdAt, status], isRecorded] = await Promise.all([
            call((redis) => redis.hmget(names.run(id), "createdAt", "status")),
            call((redis) => redis.hexists(names.steps(id), step)),
          ]);
          // The id may be another run's by now.
          const known = Number(createdAt) === createdAtMs ? (status as RunStatus) : undefined;
          if (isRecorded === 0 && known !== undefined && !hasEnded(known)) return "live";
          if (known === undefined || known === "done") return "settled";
          const records = await call((redis) => redis.hgetall(names.steps(id)));
          return markStateOf(known, readSteps(Object.entries(records).flat()).steps, step);
        }),
      );
    },
  };
}

function hasEnded(status: string | null | undefined): boolean {
  return status === undefined || status === null || isEndStatus(status);
}
