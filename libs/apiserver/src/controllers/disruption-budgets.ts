import { cloneJson, jsonEquals, type JsonObject, type JsonValue } from "@konverge/core";
import {
  formatTime,
  generationOf,
  isTerminating,
  metadataOf,
  nameOf,
  objectOf,
  objectsOf,
  textOf,
  uidOf,
} from "../objects/metadata.ts";
import type { ServerState } from "../verbs/call.ts";
import { matchesLabels } from "../verbs/selectors.ts";
import { kindOfTable, replace } from "./object-writes.ts";

const BUDGETS = "poddisruptionbudgets.policy";
/** How long an evicted Pod counts as disrupted without being deleted, as in Kubernetes. */
const DISRUPTED_MS = 120_000;

/** Updates the status of the PodDisruptionBudgets of a namespace from its Pods, as the disruption controller does. */
export function updateBudgets(state: ServerState, namespace: string): void {
  const kind = kindOfTable(state, BUDGETS);
  if (kind === undefined) return;
  const pods = objectsIn(state, "pods", namespace);
  for (const stored of state.store.table(BUDGETS).list(`${namespace}/`)) {
    const status = statusOf(state, stored.object, pods);
    if (jsonEquals(status, objectOf(stored.object, "status") ?? {})) continue;
    replace(state, { kind, stored }, { ...cloneJson(stored.object), status }, "status");
  }
}

function statusOf(state: ServerState, budget: JsonObject, pods: readonly JsonObject[]): JsonObject {
  const spec = objectOf(budget, "spec") ?? {};
  const before = objectOf(budget, "status") ?? {};
  const covered = pods.filter((pod) => matchesLabels(pod, spec["selector"]));
  const disruptedPods = stillDisrupted(objectOf(before, "disruptedPods") ?? {}, covered, state);
  const currentHealthy = covered.filter(
    (pod) => isReady(pod) && !isTerminating(pod) && !Object.hasOwn(disruptedPods, nameOf(pod)),
  ).length;
  const { expectedPods, desiredHealthy } = wantedPods(state, spec, covered);
  const spare = expectedPods <= 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy);
  return {
    observedGeneration: generationOf(budget),
    ...(Object.keys(disruptedPods).length === 0 ? {} : { disruptedPods }),
    disruptionsAllowed: spare,
    currentHealthy,
    desiredHealthy,
    expectedPods,
    conditions: conditionsOf(budget, before, spare, state.now()),
  };
}

function wantedPods(
  state: ServerState,
  spec: JsonObject,
  covered: readonly JsonObject[],
): { readonly expectedPods: number; readonly desiredHealthy: number } {
  const { maxUnavailable, minAvailable } = spec;
  if (maxUnavailable !== undefined) {
    const expectedPods = expectedScale(state, covered);
    return {
      expectedPods,
      desiredHealthy: Math.max(0, expectedPods - shareOf(maxUnavailable, expectedPods)),
    };
  }
  const isShare = typeof minAvailable === "string";
  const expectedPods = isShare ? expectedScale(state, covered) : covered.length;
  return { expectedPods, desiredHealthy: shareOf(minAvailable, expectedPods) };
}

/** A number, or a percentage that is rounded up. */
function shareOf(value: JsonValue | undefined, whole: number): number {
  if (typeof value !== "string") return Number(value ?? 0);
  return Math.ceil((Number.parseInt(value, 10) / 100) * whole);
}

/** The replicas of the controllers of these Pods. A Pod without a controller does not count. */
function expectedScale(state: ServerState, pods: readonly JsonObject[]): number {
  const replicas = new Map<string, number>();
  for (const pod of pods) {
    const controller = topController(state, pod);
    if (controller === undefined) continue;
    replicas.set(uidOf(controller), Number(objectOf(controller, "spec")?.["replicas"] ?? 0));
  }
  return [...replicas.values()].reduce((sum, count) => sum + count, 0);
}

/** Returns the ReplicaSet or StatefulSet of a Pod, or the Deployment of its ReplicaSet. */
function topController(state: ServerState, pod: JsonObject): JsonObject | undefined {
  const owner = controllerOf(state, pod, ["ReplicaSet", "StatefulSet"]);
  return owner === undefined ? undefined : (controllerOf(state, owner, ["Deployment"]) ?? owner);
}

function controllerOf(
  { store }: ServerState,
  object: JsonObject,
  kinds: readonly string[],
): JsonObject | undefined {
  const metadata = metadataOf(object);
  const owner = objectsOf(metadata, "ownerReferences").find((one) => one["controller"] === true);
  const kind = owner === undefined ? "" : textOf(owner, "kind");
  if (owner === undefined || !kinds.includes(kind)) return undefined;
  const table = store.table(`${kind.toLowerCase()}s.apps`);
  const found = table.get(`${textOf(metadata, "namespace")}/${textOf(owner, "name")}`)?.object;
  return found !== undefined && uidOf(found) === owner["uid"] ? found : undefined;
}

/** Returns the evicted Pods whose deletion has not been seen yet. */
function stillDisrupted(
  disrupted: JsonObject,
  pods: readonly JsonObject[],
  { now }: ServerState,
): JsonObject {
  return Object.fromEntries(
    Object.entries(disrupted).filter(([name, at]) => {
      const pod = pods.find((one) => nameOf(one) === name);
      if (pod === undefined || isTerminating(pod)) return false;
      return now() - Date.parse(String(at)) < DISRUPTED_MS;
    }),
  );
}

function conditionsOf(
  budget: JsonObject,
  before: JsonObject,
  spare: number,
  nowMs: number,
): JsonObject[] {
  const others = objectsOf(before, "conditions").filter(({ type }) => type !== "DisruptionAllowed");
  const known = objectsOf(before, "conditions").find(({ type }) => type === "DisruptionAllowed");
  const status = spare > 0 ? "True" : "False";
  const sameSince = known?.["status"] === status ? known["lastTransitionTime"] : undefined;
  const condition = {
    type: "DisruptionAllowed",
    status,
    observedGeneration: generationOf(budget),
    lastTransitionTime: sameSince ?? formatTime(nowMs),
    reason: spare > 0 ? "SufficientPods" : "InsufficientPods",
    message: "",
  };
  return [...others, condition];
}

function isReady(pod: JsonObject): boolean {
  const conditions = objectsOf(objectOf(pod, "status") ?? {}, "conditions");
  return conditions.some(({ type, status }) => type === "Ready" && status === "True");
}

function objectsIn({ store }: ServerState, table: string, namespace: string): JsonObject[] {
  return store
    .table(table)
    .list(`${namespace}/`)
    .map(({ object }) => object);
}
