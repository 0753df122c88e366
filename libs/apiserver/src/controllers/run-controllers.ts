import { StatusError } from "../errors/status-error.ts";
import { metadataOf, textOf } from "../objects/metadata.ts";
import type { ObjectTable } from "../storage/object-table.ts";
import type { Change } from "../storage/stored-object.ts";
import type { ServerState } from "../verbs/call.ts";
import { updateBudgets } from "./disruption-budgets.ts";
import { endClaims, endNamespace, endPod, endVolume } from "./end-deletion.ts";
import { GarbageCollector } from "./garbage-collector.ts";

/** Tables whose objects change the status of a PodDisruptionBudget. */
const COUNTED: ReadonlySet<string> = new Set([
  "deployments.apps",
  "poddisruptionbudgets.policy",
  "pods",
  "replicasets.apps",
  "statefulsets.apps",
]);

/**
 * Runs the controllers that tests of workflows notice, shortly after each write: garbage collection, the end of deletions of
 * Pods, volumes and namespaces, and the status of PodDisruptionBudgets. Returns a function that stops them.
 */
export function runControllers(
  state: ServerState,
  plan: (work: () => void) => void = setImmediate,
): () => void {
  const collector = new GarbageCollector(state);
  let due: (() => void)[] = [];
  let isRunning = true;
  const schedule = (work: () => void) => {
    if (due.length === 0) plan(drain);
    due.push(work);
  };
  const drain = () => {
    const works = due;
    due = [];
    for (const work of works) if (isRunning) ignoreRejection(work);
  };
  const unsubscribe = state.store.onChange((table, change) => {
    for (const place of collector.note(table, change)) schedule(() => collector.collect(place));
    for (const work of worksOf(state, table, change)) schedule(work);
  });
  for (const place of collector.all()) schedule(() => collector.collect(place));
  return () => {
    isRunning = false;
    unsubscribe();
  };
}

function* worksOf(
  state: ServerState,
  { id }: ObjectTable,
  { type, current: { key, object } }: Change,
): Generator<() => void> {
  const namespace = textOf(metadataOf(object), "namespace");
  if (COUNTED.has(id)) yield () => updateBudgets(state, namespace);
  if (id === "pods") yield () => endPod(state, key);
  if (id === "pods" || id === "persistentvolumeclaims") yield () => endClaims(state, namespace);
  if (id === "persistentvolumes") yield () => endVolume(state, key);
  if (id === "namespaces") yield () => endNamespace(state, key);
  else if (type === "DELETED" && namespace !== "") yield () => endNamespace(state, namespace);
}

/** A rejected write of a controller is not retried; the next change of the object starts another one. */
function ignoreRejection(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
  }
}
