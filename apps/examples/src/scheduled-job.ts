import { CronExpressionParser } from "cron-parser";
import { conditions, defineController, defineResource, reportProgress } from "konverge";
import { Job } from "konverge/kinds";
import { z } from "zod";

/** Runs a Job at the times of a cron expression, as the CronJob of kubebuilder's tutorial does. */
export const ScheduledJob = defineResource({
  group: "demo.konverge.dev",
  version: "v1",
  kind: "ScheduledJob",
  spec: z.object({
    /** In UTC. */
    schedule: z.string().min(1),
    image: z.string().min(1),
    args: z.array(z.string()).default([]),
    /** Behavior if the previous Job is still running when the next one is due. */
    concurrency: z.enum(["Allow", "Forbid", "Replace"]).default("Allow"),
    suspend: z.boolean().default(false),
    /** A Job that is later than this is not started. Default: no limit. */
    startingDeadlineSeconds: z.int().min(0).optional(),
    /** Finished Jobs to keep. */
    keepSucceeded: z.int().min(0).default(3),
    keepFailed: z.int().min(0).default(1),
  }),
  status: z.object({
    /** Names of the running Jobs. */
    active: z.array(z.string()),
    lastScheduledAt: z.iso.datetime(),
    observedGeneration: z.int(),
    conditions,
  }),
});

type KubeJob = NonNullable<typeof Job.objectType>;
const DAY_MS = 86_400_000;
const SCHEDULED_AT = "demo.konverge.dev/scheduled-at";

const isDone = ({ status }: KubeJob, how: "Complete" | "Failed"): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === how && is === "True") ?? false;
const isFinished = (job: KubeJob): boolean => isDone(job, "Complete") || isDone(job, "Failed");
const scheduledAt = ({ metadata }: KubeJob): number =>
  Date.parse(metadata.annotations?.[SCHEDULED_AT] ?? "");

/** The last time up to now and the next one, in epoch ms; undefined for an invalid expression. */
function timesOf(schedule: string, nowMs: number): { due: number; next: number } | undefined {
  try {
    const options = { currentDate: new Date(nowMs), tz: "UTC" };
    const next = CronExpressionParser.parse(schedule, options).next().getTime();
    const due = CronExpressionParser.parse(schedule, {
      ...options,
      currentDate: new Date(nowMs + 1),
    });
    return { due: due.prev().getTime(), next };
  } catch {
    return undefined;
  }
}

/** Starts a Job when one is due, deletes old ones, and requeues for the next time. */
export const scheduledJobs = defineController({
  name: "scheduled-job",
  for: ScheduledJob,
  owns: [Job],
  async reconcile({ object, kube, requeueAfter, awaitChange }) {
    const { schedule, image, args, concurrency, suspend } = object.spec;
    const { keepSucceeded, keepFailed, startingDeadlineSeconds = Infinity } = object.spec;
    const nowMs = Date.now();
    const jobs = await kube.list(Job, { ownedBy: object });
    const oldest = jobs.toSorted((a, b) => scheduledAt(a) - scheduledAt(b));
    const succeeded = oldest.filter((job) => isDone(job, "Complete"));
    const failed = oldest.filter((job) => isDone(job, "Failed"));
    let active = jobs.filter((job) => !isFinished(job) && !job.metadata.deletionTimestamp);
    const times = timesOf(schedule, nowMs);
    // An attempt may have created the Job and ended before it wrote the status.
    const last = Math.max(
      Date.parse(object.status?.lastScheduledAt ?? object.metadata.creationTimestamp ?? ""),
      ...jobs.map(scheduledAt).filter((ms) => !Number.isNaN(ms)),
    );
    const isDue = times !== undefined && !suspend && times.due > last;
    const isInTime = isDue && nowMs - times.due <= startingDeadlineSeconds * 1_000;
    const starts = isInTime && (concurrency !== "Forbid" || active.length === 0);
    if (starts) {
      if (concurrency === "Replace") {
        for (const job of active) await kube.delete(job);
        active = [];
      }
      // The name is that of the time, so a repeated attempt finds the Job of the first.
      const name = `${object.metadata.name}-${times.due / 1_000}`;
      const template = {
        spec: { restartPolicy: "Never", containers: [{ name: "job", image, args }] },
      };
      const job =
        (await kube.find(Job, name)) ??
        (await kube.create(Job, {
          name,
          ownedBy: object,
          annotations: { [SCHEDULED_AT]: new Date(times.due).toISOString() },
          spec: { template },
        }));
      if (!isFinished(job)) active = [...active, job];
    }

    const started = starts ? times.due : last;
    await kube.mutateStatus(object, (draft) => {
      draft.status.active = active.map(({ metadata }) => metadata.name).toSorted();
      if (starts || jobs.length > 0) draft.status.lastScheduledAt = new Date(started).toISOString();
      reportProgress(
        draft,
        times === undefined
          ? { state: "stalled", reason: "InvalidSchedule", message: `"${schedule}" is not cron` }
          : { state: "ready", reason: suspend ? "Suspended" : "Scheduled" },
      );
    });
    // Old Jobs are deleted after the status contains their times. The newest Job stays, so that its name exists if an
    // older attempt still creates it.
    const old = [
      ...succeeded.slice(0, Math.max(0, succeeded.length - keepSucceeded)),
      ...failed.slice(0, Math.max(0, failed.length - keepFailed)),
    ];
    for (const job of old) if (scheduledAt(job) < started) await kube.delete(job);
    // The end of a Job starts the handler as well.
    if (times === undefined || suspend) return awaitChange();
    // The 29th of February may be further away than the longest delay.
    return requeueAfter(Math.min(times.next - nowMs, DAY_MS));
  },
});
