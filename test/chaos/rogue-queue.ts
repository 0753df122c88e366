import { Queue } from "bullmq";
import { CONTROLLERS, type ControllerName } from "./fleet-contract.ts";
import type { Fleet } from "./fleet.ts";

/** The name of a rogue's jobs, which distinguishes them from Konverge's. They leave no keys when they end. */
export const ROGUE_JOB = "rogue";
export const FORGOTTEN = { removeOnComplete: true, removeOnFail: true };

/** Opens BullMQ's own object on Konverge's queue, as a dashboard does. */
export function openRogue({ redisUrl, prefix }: Fleet, controller: ControllerName): Queue {
  return new Queue(controller, {
    connection: { url: redisUrl },
    prefix: `${prefix}:{default}`,
    skipMetasUpdate: true,
  });
}

/** Removes waiting jobs of rogues, which a worker with a wrong clock may have delayed for hours. Konverge's own jobs stay. */
export async function removeRogueJobs(fleet: Fleet): Promise<void> {
  for (const controller of CONTROLLERS) {
    const rogue = openRogue(fleet, controller);
    try {
      const delayed = await rogue.getJobs(["delayed"]);
      const theirs = delayed.filter((job) => job?.name === ROGUE_JOB);
      // A job that has started in the meantime is locked, and is removed when it ends.
      await Promise.all(theirs.map((job) => job.remove().catch(() => undefined)));
    } finally {
      await rogue.close();
    }
  }
}

/**
 * Retries the jobs of runs in any state, as a dashboard's button does. BullMQ rejects it for active and waiting jobs and
 * repeats failed and completed ones. Konverge's jobs are removed when they end, so the rogue adds some that stay.
 */
export async function retryJobsOfRuns(
  queue: Queue,
  keys: readonly string[],
  random: () => number,
): Promise<void> {
  const kept = { removeOnComplete: false, removeOnFail: false };
  await Promise.all(keys.map((key) => queue.add(ROGUE_JOB, { key }, kept)));
  const states = ["active", "prioritized", "delayed", "completed", "failed"] as const;
  for (let round = 0; round < 8; round += 1) {
    const jobs = await queue.getJobs([...states], 0, 20);
    // BullMQ rejects the call for a deleted job or one in another state, as it would for a user.
    const refused = () => undefined;
    const state = random() < 0.5 ? "completed" : "failed";
    await Promise.all(jobs.map((job) => job?.retry(state).catch(refused)));
    await queue.retryJobs({ state: "completed", count: 100 });
    await queue.retryJobs({ state: "failed", count: 100 });
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}
