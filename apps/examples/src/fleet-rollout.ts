import { defineWorkflow, ready, TerminalError, type ReadonlyObject } from "konverge";
import { Deployment } from "konverge/kinds";
import { z } from "zod";

type App = NonNullable<(typeof Deployment)["objectType"]>;

/** The number of rollouts of an app in a cluster; exact despite crashes. */
export const ROLLOUTS = "demo.konverge.dev/rollouts";

const Rollout = z.object({
  namespace: z.string().min(1),
  /** Name of the Deployment, in every cluster. */
  name: z.string().min(1),
  image: z.string().min(1),
  /** Cluster names of the configuration, in the order of the rollout. */
  clusters: z.array(z.string().min(1)).min(1),
  soakSeconds: z.number().min(0).default(1_800),
});
const Approval = z.object({ approved: z.boolean() });

/**
 * Rolls out an image to one cluster after the other. Each must become ready, stay ready for a while, and be approved before the
 * next one starts. If one fails or is rejected, the clusters get their previous images back, the last one first.
 */
export const fleetRollout = defineWorkflow(
  "fleet-rollout",
  { version: 1, input: Rollout, kinds: [Deployment] },
  async (w, { namespace, name, image, clusters, soakSeconds }) => {
    const app = { apiVersion: "apps/v1", kind: "Deployment", namespace, name };
    for (const [index, cluster] of clusters.entries()) {
      if (index > 0) {
        const approval = await w.signal(`approve ${cluster}`, { schema: Approval, timeout: "24h" });
        if (approval === null) throw new TerminalError(`${cluster} was not approved within a day`);
        if (!approval.approved) throw new TerminalError(`${cluster} was rejected`);
      }
      const before = await w.step(`look at ${cluster}`, async (k) => {
        const found = await k.on(cluster).find<App>(app);
        if (found === undefined) throw new TerminalError(`${cluster} has no ${namespace}/${name}`);
        return { image: imageOf(found) };
      });
      const upgraded = await w.step(
        `upgrade ${cluster}`,
        (k) =>
          // A field of a foreign object and a count. The write has a mark, so a second try changes nothing.
          k.on(cluster).mutate<App>(app, (draft) => {
            setImage(draft, image);
            const annotations = (draft.metadata.annotations ??= {});
            annotations[ROLLOUTS] = String(Number(annotations[ROLLOUTS] ?? 0) + 1);
          }),
        {
          undo: async (_, k) => {
            await k.on(cluster).mutate<App>(app, (draft) => setImage(draft, before.image));
          },
        },
      );
      await w.waitFor(`${cluster} is ready`, ready(upgraded), { timeout: "15m" });
      await w.sleep(`soak ${cluster}`, `${soakSeconds}s`);
      await w.step(`check ${cluster}`, async (k) => {
        const found = await k.on(cluster).find<App>(upgraded);
        const wanted = found?.spec?.replicas ?? 1;
        const available = found?.status?.availableReplicas ?? 0;
        if (found === undefined || imageOf(found) !== image || available < wanted) {
          throw new TerminalError(
            `${cluster} did not stay healthy: ${available} of ${wanted} available`,
          );
        }
        return { available };
      });
    }
    return { image, clusters };
  },
);

function imageOf({ spec }: ReadonlyObject<App>): string {
  return spec?.template.spec?.containers[0]?.image ?? "";
}

function setImage({ spec }: App, image: string): void {
  const container = spec?.template.spec?.containers[0];
  if (container === undefined) throw new TerminalError("the Deployment has no container");
  container.image = image;
}
