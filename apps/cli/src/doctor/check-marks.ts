import { clusterOf, type Settings } from "@konverge/contracts";
import { defined, resourceId } from "@konverge/core";
import { namesIn } from "@konverge/engine";
import type { KubeClient } from "@konverge/kube";
import { namespacesOf, type ClusterOptions, type Config } from "@konverge/worker";
import { countForeignMarks, readInstallation } from "@konverge/workflow";
import { failedCheck, type Check } from "./check.ts";

/**
 * Counts objects of the workflows' kinds with marks of another installation. An earlier Redis has left them if there is no other
 * installation. No step removes them.
 */
export async function checkMarks(
  client: KubeClient,
  {
    settings,
    workflows,
    cluster,
  }: Pick<Config, "workflows"> & {
    readonly settings: Settings;
    readonly cluster: ClusterOptions;
  },
): Promise<Check[]> {
  const check = "step marks";
  const kinds = new Map(
    workflows.flatMap((workflow) => workflow.kinds).map((type) => [resourceId(type), type]),
  );
  if (kinds.size === 0) return [];
  const { redisUrl, prefix } = settings;
  try {
    const place = { redis: { url: redisUrl }, prefix, cluster: clusterOf(settings) };
    const installation = await readInstallation(place);
    const namespaces = namesIn(namespacesOf(settings, cluster));
    const counts = await Promise.all(
      [...kinds].map(async ([name, type]) => ({
        name,
        ...(await countForeignMarks(client, { type, installation, ...defined({ namespaces }) })),
      })),
    );
    const read = counts.map(
      ({ name, objects, isComplete }) => `${isComplete ? "" : "the first "}${objects} ${name}`,
    );
    const found = counts.flatMap(({ name, markedBy }) =>
      [...markedBy].map(([id, count]) => `${id} on ${count} ${name}`),
    );
    const detail =
      found.length === 0
        ? `none of another installation on ${read.join(", ")}`
        : `of other installations: ${found.join(", ")} (read ${read.join(", ")}); docs/restore.md has the commands that remove those of an earlier Redis`;
    return [{ check, level: "ok", detail }];
  } catch (error) {
    // They do no harm, and the check of permissions reports a missing one.
    return [{ check, level: "skip", detail: failedCheck(check, error).detail }];
  }
}
