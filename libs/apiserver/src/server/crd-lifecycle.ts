import { cloneJson, formatApiVersion, resourceId, type JsonObject } from "@konverge/core";
import { trackUpdate } from "../fields/field-manager.ts";
import { hasCondition, readCrdSpec } from "../kinds/crd-spec.ts";
import {
  CLEANUP_FINALIZER,
  customResourceDefinition,
  setCondition,
} from "../kinds/custom-resource-definition.ts";
import {
  finalizersOf,
  formatTime,
  generationOf,
  isTerminating,
  metadataOf,
  objectOf,
} from "../objects/metadata.ts";
import type { ObjectStore } from "../storage/object-store.ts";
import type { ObjectTable } from "../storage/object-table.ts";

/**
 * Runs kube-apiserver's own controllers for CustomResourceDefinitions, shortly after each write: accepts the names and
 * establishes the definition or, when it is deleted, deletes its objects and then the definition. Returns a function
 * that stops them.
 */
export function runCrdLifecycle(store: ObjectStore): () => void {
  const table = store.table(resourceId(customResourceDefinition));
  const due = new Set<string>();
  let isRunning = true;
  const schedule = (key: string) => {
    if (due.size === 0) setImmediate(work);
    due.add(key);
  };
  const work = () => {
    const keys = [...due];
    due.clear();
    if (isRunning) for (const key of keys) reconcile(store, table, key, schedule);
  };
  const unsubscribe = table.subscribe(({ type, current }) => {
    if (type !== "DELETED") schedule(current.key);
  });
  for (const { key } of table.list()) schedule(key);
  return () => {
    isRunning = false;
    unsubscribe();
  };
}

function reconcile(
  store: ObjectStore,
  table: ObjectTable,
  key: string,
  schedule: (key: string) => void,
): void {
  const crd = table.get(key)?.object;
  if (crd === undefined) return;
  if (isTerminating(crd)) cleanUp(store, table, key, schedule);
  else if (!hasCondition(crd, "Established")) establish(store, table, key, crd);
  else if (!sameNames(crd)) acceptNames(store, table, key, crd);
}

function establish(store: ObjectStore, table: ObjectTable, key: string, crd: JsonObject): void {
  const clash = table
    .list()
    .find(
      (other) =>
        other.key !== key &&
        hasCondition(other.object, "Established") &&
        clashes(other.object, crd),
    );
  const next = cloneJson(crd);
  if (clash !== undefined) {
    const { names } = readCrdSpec(crd);
    const message = `${JSON.stringify(names.kind)} is already in use`;
    setCondition(next, { type: "NamesAccepted", status: "False", reason: "KindConflict", message });
    const reason = "NotAccepted";
    const text = "not all names are accepted";
    setCondition(next, { type: "Established", status: "False", reason, message: text });
    if (!hasCondition(crd, "NamesAccepted") && sameConditions(next, crd)) return;
  } else {
    const message = "no conflicts found";
    setCondition(next, { type: "NamesAccepted", status: "True", reason: "NoConflicts", message });
    setCondition(next, {
      type: "Established",
      status: "True",
      reason: "InitialNamesAccepted",
      message: "the initial names have been accepted",
    });
    setAcceptedNames(next);
  }
  write(store, table, key, crd, next);
}

function acceptNames(store: ObjectStore, table: ObjectTable, key: string, crd: JsonObject): void {
  const next = cloneJson(crd);
  setAcceptedNames(next);
  write(store, table, key, crd, next);
}

function setAcceptedNames(crd: JsonObject): void {
  const status = objectOf(crd, "status") ?? {};
  const names = objectOf(objectOf(crd, "spec") ?? {}, "names") ?? {};
  crd["status"] = { ...status, acceptedNames: cloneJson(names) };
}

function sameNames(crd: JsonObject): boolean {
  const accepted = objectOf(objectOf(crd, "status") ?? {}, "acceptedNames");
  return JSON.stringify(accepted) === JSON.stringify(objectOf(crd, "spec")?.["names"]);
}

function sameConditions(left: JsonObject, right: JsonObject): boolean {
  const words = (crd: JsonObject) =>
    JSON.stringify(objectOf(crd, "status")?.["conditions"] ?? null).replaceAll(
      /"lastTransitionTime":"[^"]*"/g,
      "",
    );
  return words(left) === words(right);
}

function clashes(left: JsonObject, right: JsonObject): boolean {
  const [a, b] = [readCrdSpec(left), readCrdSpec(right)];
  return (
    a.group === b.group && (a.names.kind === b.names.kind || a.names.plural === b.names.plural)
  );
}

/** Deletes the existing objects. Objects with finalizers are marked, and the definition waits for them. */
function cleanUp(
  store: ObjectStore,
  table: ObjectTable,
  key: string,
  schedule: (key: string) => void,
): void {
  const crd = table.get(key)?.object;
  if (crd === undefined || !finalizersOf(crd).includes(CLEANUP_FINALIZER)) return;
  const { group, names } = readCrdSpec(crd);
  const objects = store.table(resourceId({ group, resource: names.plural }));
  for (const stored of objects.list()) {
    if (finalizersOf(stored.object).length === 0) {
      store.remove(objects, stored.key, stored.object);
    } else if (!isTerminating(stored.object)) {
      const marked = cloneJson(stored.object);
      Object.assign(metadataOf(marked), {
        deletionTimestamp: formatTime(Date.now()),
        deletionGracePeriodSeconds: 0,
        generation: generationOf(marked) + 1,
      });
      store.put(objects, stored.key, marked);
    }
  }
  if (objects.size > 0) {
    const unsubscribe = objects.subscribe(({ type }) => {
      if (type !== "DELETED" || objects.size > 0) return;
      unsubscribe();
      schedule(key);
    });
    return;
  }
  const rest = finalizersOf(crd).filter((one) => one !== CLEANUP_FINALIZER);
  const next = cloneJson(crd);
  metadataOf(next)["finalizers"] = rest;
  if (rest.length === 0) store.remove(table, key, next);
  else store.put(table, key, next);
}

function write(
  store: ObjectStore,
  table: ObjectTable,
  key: string,
  live: JsonObject,
  next: JsonObject,
): void {
  trackUpdate(live, next, {
    schema: customResourceDefinition.schema,
    blank: customResourceDefinition.blank,
    apiVersion: formatApiVersion(customResourceDefinition.group, customResourceDefinition.version),
    subresource: "status",
    resetFields: customResourceDefinition.resetFields("status"),
    manager: "kube-apiserver",
    nowMs: Date.now(),
  });
  store.put(table, key, next);
}
