import { cloneJson, type JsonObject } from "@konverge/core";
import { badRequest, notFound, StatusError } from "../errors/status-error.ts";
import {
  formatTime,
  generationOf,
  isTerminating,
  nameOf,
  objectOf,
  objectsOf,
  stringsOf,
  textOf,
} from "../objects/metadata.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import { keyOf, type Answer, type Call } from "./call.ts";
import { decodeBody } from "./decode-body.ts";
import { deleteObject } from "./delete.ts";
import { matchNamespace } from "./object-identity.ts";
import { matchesLabels } from "./selectors.ts";
import { readWriteOptions } from "./write-options.ts";

const REFUSED = "Cannot evict pod as it would violate the pod's disruption budget.";
const BUDGETS = "poddisruptionbudgets.policy";
/** A Pod in one of these phases is not available anyway. */
const UNCOUNTED = ["Failed", "Pending", "Succeeded"];

/**
 * POST of an Eviction: deletes a Pod if its PodDisruptionBudget allows it.
 * @throws StatusError 429 if it does not; 400 if the body names another Pod; 500 with more than one budget
 */
export function evictPod(call: Call): Answer {
  const { kind, name, state, table, namespace } = call;
  const options = readWriteOptions("CreateOptions", call.query, call.userAgent);
  const type = {
    group: "policy",
    version: "v1",
    kind: "Eviction",
    decode: () => [],
    isCustom: false,
  };
  const eviction = decodeBody(call, type, options);
  matchNamespace(call, eviction);
  if (nameOf(eviction) !== name) {
    throw badRequest("name in URL does not match name in Eviction object");
  }
  const stored = table.get(keyOf(call, name));
  if (stored === undefined) throw notFound(kind, name);
  const status = objectOf(stored.object, "status") ?? {};
  const deletion = objectOf(eviction, "deleteOptions") ?? {};
  const isDryRun = options.isDryRun || stringsOf(deletion, "dryRun").length > 0;
  if (!UNCOUNTED.includes(textOf(status, "phase")) && !isTerminating(stored.object)) {
    const budgets = state.store
      .table(BUDGETS)
      .list(`${namespace}/`)
      .filter(({ object }) => matchesLabels(stored.object, objectOf(object, "spec")?.["selector"]));
    if (budgets.length > 1) {
      throw new StatusError(
        500,
        "",
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
      );
    }
    const [budget] = budgets;
    const isGuarded = budget !== undefined && (isReady(status) || !ignoresUnready(budget.object));
    if (isGuarded) takeDisruption(call, budget, isDryRun);
  }
  if (!isDryRun) addCondition(call, stored);
  const body = JSON.stringify(options.isDryRun ? { ...deletion, dryRun: ["All"] } : deletion);
  deleteObject({ ...call, subresource: "", contentType: "application/json", body });
  const answer = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };
  return { code: 201, text: JSON.stringify(answer) };
}

function isReady(status: JsonObject): boolean {
  const conditions = objectsOf(status, "conditions");
  return conditions.some((one) => one["type"] === "Ready" && one["status"] === "True");
}

/** Returns whether Pods that are not ready may be evicted without counting as a disruption. */
function ignoresUnready(budget: JsonObject): boolean {
  const policy = objectOf(budget, "spec")?.["unhealthyPodEvictionPolicy"];
  if (policy === "AlwaysAllow") return true;
  const { currentHealthy = 0, desiredHealthy = 0 } = objectOf(budget, "status") ?? {};
  return Number(currentHealthy) >= Number(desiredHealthy) && Number(desiredHealthy) > 0;
}

function takeDisruption({ state, name }: Call, budget: StoredObject, isDryRun: boolean): void {
  const next = cloneJson(budget.object);
  const status = objectOf(next, "status") ?? {};
  const budgetName = nameOf(next);
  if (Number(status["observedGeneration"] ?? 0) < generationOf(next)) {
    const message = `The disruption budget ${budgetName} is still being processed by the server.`;
    throw refused(message, 10);
  }
  const allowed = Number(status["disruptionsAllowed"] ?? 0);
  if (allowed <= 0) {
    const [wanted, healthy] = [Number(status["desiredHealthy"]), Number(status["currentHealthy"])];
    throw refused(
      healthy <= wanted
        ? `The disruption budget ${budgetName} needs ${wanted} healthy pods and has ${healthy} currently`
        : `The disruption budget ${budgetName} does not allow evicting pods currently`,
    );
  }
  if (isDryRun) return;
  const disrupted = { ...objectOf(status, "disruptedPods"), [name]: formatTime(state.now()) };
  next["status"] = { ...status, disruptionsAllowed: allowed - 1, disruptedPods: disrupted };
  state.store.put(state.store.table(BUDGETS), budget.key, next);
}

function refused(message: string, retryAfterSeconds = 0): StatusError {
  const causes = [{ reason: "DisruptionBudget", message }];
  return new StatusError(429, "TooManyRequests", REFUSED, { causes, retryAfterSeconds });
}

function addCondition({ state, table }: Call, { key, object }: StoredObject): void {
  const next: JsonObject = cloneJson(object);
  const status = objectOf(next, "status") ?? {};
  const others = objectsOf(status, "conditions").filter(({ type }) => type !== "DisruptionTarget");
  const condition = {
    type: "DisruptionTarget",
    status: "True",
    lastProbeTime: null,
    lastTransitionTime: formatTime(state.now()),
    reason: "EvictionByEvictionAPI",
    message: "Eviction API: evicting",
  };
  next["status"] = { ...status, conditions: [...others, condition] };
  state.store.put(table, key, next);
}
