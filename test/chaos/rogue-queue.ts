import { Queue } from "bullmq";
import { CONTROLLERS, type ControllerName } from "./fleet-contract.ts";
import type { Fleet } from "./fleet.ts";

/** What a rogue calls its jobs, so that they can be told from ours, and that they leave nothing when they end. */
export const ROGUE_JOB = "rogue";
export const FORGOTTEN = { removeOnComplete: true, removeOnFail: true };

/** What a dashboard has: BullMQ's own object on our queue. */
export function openRogue({ redisUrl, prefix }: Fleet, controller: ControllerName): Queue {
  return new Queue(controller, {
    connection: { url: redisUrl },
    prefix: `${prefix}:{default}`,
    skipMetasUpdate: true,
  });
}

/** Takes away the jobs of rogues that wait, which a worker whose clock was wrong may have put off for hours. Ours stay. */
export async function removeRogueJobs(fleet: Fleet): Promise<void> {
  for (const controller of CONTROLLERS) {
    const rogue = openRogue(fleet, controller);
    try {
      const delayed = await rogue.getJobs(["delayed"]);
      const theirs = delayed.filter((job) => job?.name === ROGUE_JOB);
      // One that has begun to run meanwhile is locked, and goes by itself.
      await Promise.all(theirs.map((job) => job.remove().catch(() => undefined)));
    } finally {
      await rogue.close();
    }
  }
}

/**
 * What a dashboard's button "retry" does to the jobs of runs, in whatever state they are: those at work and those that wait refuse, those
 * that have failed or are done run again. Jobs of ours leave nothing to press it on, so the rogue adds some that stay.
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
    // One that has gone meanwhile, or is in another state, refuses; so it would for a person.
    const refused = () => undefined;
    const state = random() < 0.5 ? "completed" : "failed";
    await Promise.all(jobs.map((job) => job?.retry(state).catch(refused)));
    await queue.retryJobs({ state: "completed", count: 100 });
    await queue.retryJobs({ state: "failed", count: 100 });
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}
