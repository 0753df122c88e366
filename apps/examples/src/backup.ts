import { defineController, setCondition } from "konverge";
import { ConfigMap } from "konverge/kinds";
import { Backup } from "./backup-resource.ts";

/** Namespace of the copies; must exist. An owner reference cannot cross namespaces, so the controller needs `cleanup`. */
export const VAULT = "backups";
export const LAST_BACKUP = "demo.konverge.dev/last-backup";
const DAY_MS = 86_400_000;

const copyOf = ({ metadata }: { readonly metadata: { namespace?: string; name: string } }) => ({
  namespace: VAULT,
  name: `${metadata.namespace}.${metadata.name}`,
});

/** Copies a ConfigMap once to another namespace. Deletes the copy when it expires, or with the backup. */
export const backups = defineController({
  name: "backup",
  for: Backup,
  permissions: [{ type: ConfigMap, verbs: ["get", "create", "update", "patch", "delete"] }],
  async reconcile({ object: backup, kube, requeueAfter, awaitChange }) {
    const { source: storedFrom, retentionDays } = backup.spec;
    const report = (
      status: NonNullable<typeof backup.status>,
      reason: string,
      ready: "True" | "False",
    ) =>
      // Users write the spec; the controller writes the status through its subresource.
      kube.mutateStatus(backup, (draft) => {
        Object.assign(draft.status, status);
        const { generation: observedGeneration = 0 } = backup.metadata;
        draft.status.observedGeneration = observedGeneration;
        setCondition(draft, { type: "Ready", status: ready, reason, observedGeneration });
      });

    let { phase, storedAt } = backup.status ?? {};
    if (backup.status?.storedFrom !== storedFrom) phase = "Pending";
    if (phase === "Expired") return awaitChange();
    if (phase !== "Stored" || storedAt === undefined) {
      const source = await kube.find(ConfigMap, storedFrom);
      if (source === undefined) {
        await report({ phase: "Pending" }, "SourceMissing", "False");
        // Only while work is pending.
        return requeueAfter("10s");
      }
      // Update (PUT): the controller owns the whole copy and replaces it, including changes of others. A change between read
      // and write is a conflict: this attempt ends, and the next one reads again.
      const { data = {} } = source;
      const copy = await kube.find(ConfigMap, copyOf(backup));
      if (copy === undefined) await kube.create(ConfigMap, { ...copyOf(backup), data });
      else await kube.replace({ ...copy, data });
      // Patch: the source belongs to another owner; only one annotation is ours. Only the difference is sent, so no other field
      // is written back. After a conflict, the object is read and the function runs again.
      await kube.mutate(source, (draft) => {
        (draft.metadata.annotations ??= {})[LAST_BACKUP] = backup.metadata.name;
      });
      storedAt = new Date().toISOString();
      await report({ phase: "Stored", storedFrom, storedAt }, "Stored", "True");
    }

    const leftMs = Date.parse(storedAt) + retentionDays * DAY_MS - Date.now();
    if (leftMs > 0) return requeueAfter(leftMs);
    const copy = await kube.find(ConfigMap, copyOf(backup));
    if (copy !== undefined) await kube.delete(copy);
    await report({ phase: "Expired" }, "Expired", "False");
    return awaitChange();
  },
  /** Runs before the backup is deleted, which has the finalizer `konverge.dev/backup` until this returns. */
  async cleanup({ object: backup, kube }) {
    const copy = await kube.find(ConfigMap, copyOf(backup));
    if (copy !== undefined) await kube.delete(copy);
  },
});
