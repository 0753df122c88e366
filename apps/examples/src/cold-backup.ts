import { complete, defineWorkflow, field, TerminalError, type WorkflowContext } from "konverge";
import { Deployment, Job } from "konverge/kinds";
import { z } from "zod";

type App = NonNullable<(typeof Deployment)["objectType"]>;

const ColdBackup = z.object({
  namespace: z.string().min(1),
  /** Name of the Deployment that writes to the volume. */
  name: z.string().min(1),
  /** Name of the PersistentVolumeClaim. */
  claim: z.string().min(1),
  /** Image that copies the volume at /data if called with `copy`, and fails with `verify` if the copy is incomplete. */
  image: z.string().min(1),
});

/**
 * Stops an app, copies its volume with a Job, checks the copy with another Job, and starts the app again. After any failure or
 * cancellation, the app gets its replicas back.
 */
export const coldBackup = defineWorkflow(
  "cold-backup",
  { version: 1, input: ColdBackup, kinds: [Deployment, Job] },
  async (w, { namespace, name, claim, image }) => {
    const app = { apiVersion: "apps/v1", kind: "Deployment", namespace, name };
    const before = await w.step("look at the app", async (k) => {
      const found = await k.find<App>(app);
      if (found === undefined)
        throw new TerminalError(`Deployment ${namespace}/${name} does not exist`);
      return { replicas: found.spec?.replicas ?? 1 };
    });
    const stopped = await w.step("stop the app", (k) => k.scale(app, 0), {
      // Also after a failure, because the step may have scaled.
      undo: async (_, k) => void (await k.scale(app, before.replicas)),
    });
    await w.waitFor(
      "no pod is left",
      field<App>(
        stopped,
        ({ metadata, status }) =>
          status?.observedGeneration === metadata.generation && (status?.replicas ?? 0) === 0,
      ),
      { timeout: "10m" },
    );
    await runJob(w, "copy", { namespace, name, claim, image });
    await runJob(w, "verify", { namespace, name, claim, image });
    await w.step("start the app", (k) => k.scale(app, before.replicas));
    return { replicas: before.replicas };
  },
);

/** Runs a Job to completion. Deletes it if the backup fails; a successful one stays as a record. */
async function runJob(
  w: WorkflowContext,
  verb: "copy" | "verify",
  { namespace, name, claim, image }: z.infer<typeof ColdBackup>,
): Promise<void> {
  const job = await w.step(
    verb,
    (k) =>
      k.runJob({
        apiVersion: "batch/v1",
        kind: "Job",
        // Run and step complete the name, so a second try finds the Job of the first.
        metadata: { namespace, generateName: `${name}-${verb}-` },
        spec: {
          backoffLimit: 2,
          template: {
            spec: {
              restartPolicy: "Never",
              containers: [
                {
                  name: verb,
                  image,
                  args: [verb],
                  volumeMounts: [{ name: "data", mountPath: "/data", readOnly: true }],
                },
              ],
              volumes: [{ name: "data", persistentVolumeClaim: { claimName: claim } }],
            },
          },
        },
      }),
    {
      undo: async (ref, k) => {
        if (ref !== undefined) await k.delete(ref);
      },
    },
  );
  await w.waitFor(`${verb} is complete`, complete(job), { timeout: "6h" });
}
