import { createWorkQueue, type WorkQueue } from "@konverge/queue";

export const GAUGE_CONTROLLER = "gauge";

/** The queue of the workers that {@link GAUGE_CONTROLLER} runs in, from outside. */
export function openGaugeQueue(redisUrl: string, prefix: string): WorkQueue {
  return createWorkQueue({
    redis: { url: redisUrl },
    controller: GAUGE_CONTROLLER,
    cluster: "default",
    prefix,
  });
}

const LOOK_AGAIN_MS = 20;

/** Waits for the initial resync, so that it is not part of the measurement. */
export async function drained(queue: WorkQueue): Promise<void> {
  for (let sawWork = false; ;) {
    const { waiting, active, delayed } = await queue.counts();
    const open = waiting + active + delayed;
    if (open > 0) sawWork = true;
    else if (sawWork) return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}
