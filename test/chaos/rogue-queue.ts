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
