import {
  complete,
  conditions,
  defineController,
  defineResource,
  defineWorkflow,
  reportProgress,
  TerminalError,
} from "konverge";
import { ConfigMap, Job } from "konverge/kinds";
import { z } from "zod";

/** A dump of a database, which a user approves. A change of the spec starts another dump. */
export const DatabaseBackup = defineResource({
  group: "demo.konverge.dev",
  version: "v1",
  kind: "DatabaseBackup",
  spec: z.object({
    database: z.string().min(1),
    image: z.string().default("postgres:17"),
    /** Wait for the signal `approve` after the dump. */
    approval: z.boolean().default(true),
  }),
  status: z.object({
    /** Id of the workflow run. */
    run: z.string(),
    location: z.string(),
    observedGeneration: z.int(),
    conditions,
  }),
});

const Input = z.object({
  namespace: z.string(),
  name: z.string(),
  database: z.string(),
  image: z.string(),
  approval: z.boolean(),
});

const Approval = z.object({ by: z.string(), ok: z.boolean() });

/** Dumps a database with a Job, under a lock that two dumps cannot hold at once. */
export const databaseDump = defineWorkflow(
  "database-dump",
  { version: 1, input: Input, kinds: [ConfigMap, Job] },
  async (w, { namespace, name, database, image, approval }) => {
    const lock = await w.step(
      "lock",
      (k) =>
        // Fails if another run holds the lock. The undo then does not delete it.
        k.create({
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: { namespace, name: `${name}-lock` },
          data: { database },
        }),
      {
        undo: async (ref, k) => {
          if (ref !== undefined) await k.delete(ref);
        },
      },
    );
    const startedAt = await w.now();
    const containers = [{ name: "dump", image, args: ["pg_dump", database] }];
    const job = await w.step(
      "dump",
      (k) =>
        k.runJob({
          apiVersion: "batch/v1",
          kind: "Job",
          metadata: { namespace, generateName: `${name}-dump-` },
          spec: {
            backoffLimit: 0,
            template: { spec: { restartPolicy: "Never", containers } },
          },
        }),
      {
        undo: async (ref, k) => {
          if (ref !== undefined) await k.delete(ref);
        },
      },
    );
    await w.waitFor("dumped", complete(job), { timeout: "1h" });
    if (approval) {
      const answer = await w.signal("approve", { schema: Approval, timeout: "24h" });
      if (answer === null) throw new TerminalError("the dump was not approved within 24 hours");
      if (!answer.ok) throw new TerminalError(`the dump was rejected by ${answer.by}`);
    }
    await w.step("delete the Job", (k) => k.delete(job));
    await w.step("unlock", (k) => k.delete(lock));
    return { location: `s3://backups/${database}/${startedAt}` };
  },
);

/** Starts a run for each generation of a backup, and copies its result to the status. */
export const databaseBackups = defineController({
  name: "database-backup",
  for: DatabaseBackup,
  async reconcile({ object: backup, kube, startRun }) {
    const { name, namespace = "default" } = backup.metadata;
    const input = { namespace, name, ...backup.spec };
    const run = await startRun(databaseDump, input, {
      onExisting: "supersede",
      onEnd: "reconcile",
    });
    await kube.mutateStatus(backup, (draft) => {
      draft.status.run = run.id;
      if (run.status === "done") {
        draft.status.location = z.object({ location: z.string() }).parse(run.result).location;
        reportProgress(draft, { state: "ready", reason: "BackedUp" });
      } else if (run.status === "failed" || run.status === "cancelled") {
        const message = run.error?.message ?? "";
        reportProgress(draft, { state: "stalled", reason: "BackupFailed", message });
      } else reportProgress(draft, { state: "reconciling", reason: "Running" });
    });
  },
});
