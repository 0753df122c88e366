import { cloneJson, type JsonObject } from "@konverge/core";
import {
  finalizersOf,
  isTerminating,
  metadataOf,
  objectOf,
  objectsOf,
  textOf,
} from "../objects/metadata.ts";
import type { ServerState } from "../verbs/call.ts";
import { kindOfTable, remove, replace } from "./object-writes.ts";

const PODS = "pods";
const CLAIMS = "persistentvolumeclaims";
const VOLUMES = "persistentvolumes";
const NAMESPACES = "namespaces";

/** Removes a Pod that is being deleted: no container runs in it that could stop first. */
export function endPod(state: ServerState, key: string): void {
  const stored = state.store.table(PODS).get(key);
  const kind = kindOfTable(state, PODS);
  if (stored === undefined || kind === undefined || !isTerminating(stored.object)) return;
  if (metadataOf(stored.object)["deletionGracePeriodSeconds"] === 0) return;
  remove(state, { kind, stored }, { gracePeriodSeconds: 0 });
}

/** Removes the protection of deleted claims of a namespace that no Pod uses. */
export function endClaims(state: ServerState, namespace: string): void {
  const used = new Set(
    state.store
      .table(PODS)
      .list(`${namespace}/`)
      .flatMap(({ object }) => objectsOf(objectOf(object, "spec") ?? {}, "volumes"))
      .map((volume) => objectOf(volume, "persistentVolumeClaim")?.["claimName"]),
  );
  for (const { key, object } of state.store.table(CLAIMS).list(`${namespace}/`)) {
    if (used.has(textOf(metadataOf(object), "name"))) continue;
    dropProtection(state, CLAIMS, key, "kubernetes.io/pvc-protection");
  }
}

/** Removes the protection of a deleted volume that is not bound. */
export function endVolume(state: ServerState, key: string): void {
  const object = state.store.table(VOLUMES).get(key)?.object ?? {};
  if (objectOf(object, "status")?.["phase"] === "Bound") return;
  dropProtection(state, VOLUMES, key, "kubernetes.io/pv-protection");
}

/** Deletes the content of a deleted namespace, and then the namespace. */
export function endNamespace(state: ServerState, name: string): void {
  const stored = state.store.table(NAMESPACES).get(name);
  const kind = kindOfTable(state, NAMESPACES);
  if (stored === undefined || kind === undefined || !isTerminating(stored.object)) return;
  let left = 0;
  for (const table of state.store.tables()) {
    const contentKind = kindOfTable(state, table.id);
    if (contentKind?.namespaced !== true) continue;
    for (const content of table.list(`${name}/`)) {
      left += 1;
      if (isTerminating(content.object)) continue;
      remove(state, { kind: contentKind, stored: content }, { propagationPolicy: "Background" });
    }
  }
  if (left > 0) return;
  const next: JsonObject = cloneJson(stored.object);
  next["spec"] = { ...objectOf(next, "spec"), finalizers: [] };
  replace(state, { kind, stored }, next, "finalize");
}

function dropProtection(state: ServerState, table: string, key: string, finalizer: string): void {
  const stored = state.store.table(table).get(key);
  const kind = kindOfTable(state, table);
  if (stored === undefined || kind === undefined || !isTerminating(stored.object)) return;
  const finalizers = finalizersOf(stored.object);
  if (!finalizers.includes(finalizer)) return;
  const next = cloneJson(stored.object);
  metadataOf(next)["finalizers"] = finalizers.filter((one) => one !== finalizer);
  replace(state, { kind, stored }, next);
}
