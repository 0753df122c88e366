import { sleepMs } from "@konverge/core";
import { DelayedError, WaitingError, type Job } from "bullmq";
import type { AttemptEnd } from "../contract/work-queue.ts";
import type { EndPlan } from "./end-plan.ts";
import type { JobPayload } from "../keys/job-payload.ts";
import { RetrySignal } from "./retry-signal.ts";

/** A job that BullMQ handed out, with its lock token. */
export interface TakenJob {
  readonly job: Job<JobPayload>;
  readonly token: string | undefined;
  /** Wakes an idle worker: BullMQ adds no marker for a job that returns. */
  readonly announce: () => void;
}

/** Delays a job without counting a BullMQ attempt, and then keeps its slot for `restMs`. Always throws, because BullMQ must not finish the job. */
export async function delayJob({ job, token }: TakenJob, ms: number, restMs = 0): Promise<never> {
  await job.moveToDelayed(Date.now() + Math.max(1, Math.round(ms)), token);
  if (restMs > 0) await sleepMs(restMs);
  throw new DelayedError();
}

/** Returns a job to the queue for another worker, and then keeps its slot for `restMs`. Always throws. */
export async function putBack({ job, token, announce }: TakenJob, restMs = 0): Promise<never> {
  if (token !== undefined) {
    await job.moveToWait(token);
    announce();
    if (restMs > 0) await sleepMs(restMs);
  }
  throw new WaitingError();
}

/** Moves a job after the end of its attempt was stored. Returns if BullMQ must finish it, else throws. */
export async function moveOn(
  taken: TakenJob,
  plan: EndPlan,
  { outcome, restMs }: AttemptEnd,
): Promise<void> {
  switch (plan.job) {
    case "complete":
      return undefined;
    case "delay":
      return await delayJob(taken, plan.delayMs, restMs);
    case "putBack":
      return await putBack(taken, restMs);
    case "retry":
      throw new RetrySignal(outcome.kind, plan.delayMs);
  }
}
