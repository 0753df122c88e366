import type { Outcome } from "@konverge/core";
import { DelayedError, WaitingError, type Job } from "bullmq";
import type { EndPlan } from "./end-plan.ts";
import type { JobPayload } from "../keys/job-payload.ts";
import { RetrySignal } from "./retry-signal.ts";

/** Delays a job without counting a BullMQ attempt. Always throws, because BullMQ must not finish the job. */
export async function delayJob(
  job: Job<JobPayload>,
  token: string | undefined,
  ms: number,
): Promise<never> {
  await job.moveToDelayed(Date.now() + Math.max(1, Math.round(ms)), token);
  throw new DelayedError();
}

/** Returns a job to the queue for another worker. Always throws. */
export async function putBack(job: Job<JobPayload>, token: string | undefined): Promise<never> {
  if (token !== undefined) await job.moveToWait(token);
  throw new WaitingError();
}

/** Moves a job after the end of its attempt was stored. Returns if BullMQ must finish it, else throws. */
export async function moveOn(
  job: Job<JobPayload>,
  token: string | undefined,
  plan: EndPlan,
  outcome: Outcome,
): Promise<void> {
  switch (plan.job) {
    case "complete":
      return undefined;
    case "delay":
      return await delayJob(job, token, plan.delayMs);
    case "putBack":
      return await putBack(job, token);
    case "retry":
      throw new RetrySignal(outcome.kind, plan.delayMs);
  }
}
