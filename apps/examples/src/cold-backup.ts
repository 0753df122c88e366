import { complete, defineWorkflow, field, TerminalError, type WorkflowContext } from "konverge";
import { Deployment, Job } from "konverge/kinds";
import { z } from "zod";

type App = NonNullable<(typeof Deployment)["objectType"]>;

const ColdBackup = z.object({
  namespace: z.string().min(1),
  /** Of the Deployment that writes to the volume. */
  name: z.string().min(1),
  /** Of the PersistentVolumeClaim. */
  claim: z.string().min(1),
  /** Copies the volume below /data when it is called with `copy`, and fails with `verify` when the copy is not whole. */
  image: z.string().min(1),
});

/**
 * Stops an app, copies its volume by a Job, checks the copy by another, and starts the app again. Whatever fails, and whoever
 * cancels it: the app has its replicas again in the end.
 */
export const coldBackup = defineWorkflow(
  "cold-backup",
  { version: 1, input: ColdBackup, kinds: [Deployment, Job] },
  async (w, { namespace, name, claim, image }) => {
    const app = { apiVersion: "apps/v1", kind: "Deployment", namespace, name };
    const before = await w.step("look at the app", async (k) => {
      const found = await k.get<App>(app);
      if (found === undefined) throw new TerminalError(`there is no ${namespace}/${name}`);
      return { replicas: found.spec?.replicas ?? 1 };
    });
    const stopped = await w.step("stop the app", (k) => k.scale(app, 0), {
      // Also when the step failed: it may have scaled all the same.
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

/** Runs a Job to its end, and takes it away when the backup fails; one that succeeded stays as a record. */
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
        // The rest of the name is made of run and step: a second try finds the Job of the first.
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
        if (ref !== undefined) await k.delete(ref, { propagationPolicy: "Background" });
      },
    },
  );
  await w.waitFor(`${verb} is complete`, complete(job), { timeout: "6h" });
}
