import { defined, ensureError, isKonvergeError } from "@konverge/core";
import {
  createEventRecorder,
  isKubeApiError,
  type EventInput,
  type EventRecorder,
} from "@konverge/kube";
import type { ClusterAccess } from "../define/cluster-access.ts";
import type { Reached, VerbScope } from "./verb-scope.ts";

/** The recorders of a worker, by workflow: equal events of several steps are one series. */
const recorders = new WeakMap<ClusterAccess, Map<string, EventRecorder>>();

/** Records an event about an object. Its failure does not fail the step. */
export async function recordStepEvent(
  scope: VerbScope,
  { client, type, at, uid }: Reached,
  event: EventInput,
): Promise<void> {
  const { clusters, held } = scope.journal;
  if (clusters === undefined) return;
  await scope.assertHeld();
  const regarding = { ...type, ...at, ...defined({ uid }) };
  const message = scope.scrub(event.message);
  try {
    await recorderOf(clusters, held.workflow).record(client, regarding, { ...event, message });
  } catch (error) {
    // The end of the attempt is no failure of the event.
    if (!isKubeApiError(error) && !isKonvergeError(error)) throw error;
    scope.log.warn({ err: ensureError(error) }, "event not recorded");
  }
}

function recorderOf(clusters: ClusterAccess, workflow: string): EventRecorder {
  const known = recorders.get(clusters) ?? new Map<string, EventRecorder>();
  recorders.set(clusters, known);
  const recorder = known.get(workflow) ?? createEventRecorder(`konverge/${workflow}`);
  known.set(workflow, recorder);
  return recorder;
}
