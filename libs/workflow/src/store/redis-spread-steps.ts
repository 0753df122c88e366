import { hasEnded, type JournalCall } from "./journal-call.ts";
import type { RedisRuns } from "./redis-runs.ts";
import { admitSpreadScript } from "./scripts/admit-spread.ts";
import { appendLogScript } from "./scripts/append-log.ts";
import type { AwaitedSpread } from "./spread-step.ts";

/** Lines of a step whose run no longer waits for it are dropped. */
export const appendSpreadLog: JournalCall<"appendSpreadLog"> = async (runs, spread, lines) => {
  const { workflow, id, createdAtMs } = spread;
  const names = runs.namesOf(workflow);
  await runs.evaluate(appendLogScript, {
    keys: { run: names.run(id), logs: names.logs(id) },
    args: { epoch: "", createdAt: createdAtMs, logged: 0 },
    each: lines.map((line) => ({ text: JSON.stringify(line) })),
  });
};

export const admitSpread: JournalCall<"admitSpread"> = async (runs, spread, hold) => {
  const { workflow, id, step, createdAtMs, round, reopened } = spread;
  const { wakes, ...names } = runs.namesOf(workflow);
  return await runs.evaluate(admitSpreadScript, {
    keys: { run: names.run(id), steps: names.steps(id), wakes },
    args: { id, step, createdAt: createdAtMs, round, reopened, always: hold === "always" },
  });
};

export async function isSpreadAwaited(
  runs: RedisRuns,
  { workflow, id, createdAtMs, round, reopened }: AwaitedSpread,
): Promise<boolean> {
  const [status, createdAt, ...of] = await runs.call((redis) =>
    redis.hmget(runs.namesOf(workflow).run(id), "status", "createdAt", "round", "reopened"),
  );
  const [inRound, times] = [Number(of[0] ?? 1), Number(of[1] ?? 0)];
  const isSame = Number(createdAt) === createdAtMs && inRound === round && times === reopened;
  return isSame && !hasEnded(status);
}
