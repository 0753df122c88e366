import { randomUUID } from "node:crypto";
import { formatTime } from "../objects/metadata.ts";
import type { ObjectStore } from "../storage/object-store.ts";

/** Creates the namespaces of every cluster; the uid of kube-system identifies a cluster. */
export function makeFirstObjects(store: ObjectStore): void {
  const table = store.table("namespaces");
  for (const name of ["default", "kube-node-lease", "kube-public", "kube-system"]) {
    if (table.get(name) !== undefined) continue;
    store.put(table, name, {
      kind: "Namespace",
      apiVersion: "v1",
      metadata: {
        name,
        uid: randomUUID(),
        creationTimestamp: formatTime(Date.now()),
        labels: { "kubernetes.io/metadata.name": name },
      },
      spec: { finalizers: ["kubernetes"] },
      status: { phase: "Active" },
    });
  }
}
