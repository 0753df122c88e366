import type { AttemptRun } from "./run-attempt.ts";

/**
 * Returns the versions of the reconciled object that an attempt read or wrote, for a kind without generation. Ends at a write
 * that another writer's change preceded, because the handler has not seen that change.
 */
export function objectVersions({
  object,
  trace,
}: Pick<AttemptRun, "object" | "trace">): string[] | undefined {
  const { uid, generation, resourceVersion } = object?.metadata ?? {};
  if (uid === undefined || generation !== undefined || resourceVersion === undefined) return;
  const versions = [resourceVersion];
  for (const write of trace.writes) {
    const { metadata } = write.object;
    if (metadata.uid !== uid || write.verb === "delete") continue;
    const { fromVersion = resourceVersion } = write;
    if (!versions.includes(fromVersion)) break;
    if (metadata.resourceVersion !== undefined) versions.push(metadata.resourceVersion);
  }
  return versions;
}
