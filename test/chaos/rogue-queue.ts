import { Queue } from "bullmq";
import type { ControllerName } from "./fleet-contract.ts";
import type { Fleet } from "./fleet.ts";

/** What a rogue adds, it also clears away. */
export const FORGOTTEN = { removeOnComplete: true, removeOnFail: true };

/** What a dashboard has: BullMQ's own object on our queue. */
export function openRogue({ redisUrl, prefix }: Fleet, controller: ControllerName): Queue {
  return new Queue(controller, {
    connection: { url: redisUrl },
    prefix: `${prefix}:{default}`,
    skipMetasUpdate: true,
  });
}
