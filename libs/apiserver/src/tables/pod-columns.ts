import type { JsonObject } from "@konverge/core";
import { isTerminating, objectOf, objectsOf, textOf } from "../objects/metadata.ts";
import {
  AGE,
  NAME,
  numberIn,
  orNone,
  specOf,
  statusOf,
  text,
  wide,
  type Column,
} from "./column.ts";

export const podColumns: readonly Column[] = [
  NAME,
  text("Ready", (pod) => {
    const containers = objectsOf(specOf(pod), "containers").length;
    return `${containerStates(pod).filter(isReady).length}/${containers}`;
  }),
  text("Status", reasonOf),
  text("Restarts", (pod) =>
    String(containerStates(pod).reduce((sum, one) => sum + numberIn(one, "restartCount"), 0)),
  ),
  AGE,
  wide("IP", (pod) => orNone(textOf(statusOf(pod), "podIP"))),
  wide("Node", (pod) => orNone(textOf(specOf(pod), "nodeName"))),
  wide("Nominated Node", (pod) => orNone(textOf(statusOf(pod), "nominatedNodeName"))),
  wide("Readiness Gates", (pod) => {
    const gates = objectsOf(specOf(pod), "readinessGates");
    const isTrue = ({ conditionType }: JsonObject) =>
      objectsOf(statusOf(pod), "conditions").some(
        ({ type, status }) => type === conditionType && status === "True",
      );
    return gates.length === 0 ? "<none>" : `${gates.filter(isTrue).length}/${gates.length}`;
  }),
];

const containerStates = (pod: JsonObject) => objectsOf(statusOf(pod), "containerStatuses");
const isReady = (container: JsonObject) =>
  container["ready"] === true &&
  objectOf(objectOf(container, "state") ?? {}, "running") !== undefined;

/** The phase, or why a container is not running. */
function reasonOf(pod: JsonObject): string {
  const status = statusOf(pod);
  const phase = textOf(status, "phase");
  if (isTerminating(pod) && phase !== "Failed" && phase !== "Succeeded") return "Terminating";
  const reasons = containerStates(pod).map(stateReason);
  return reasons.find((reason) => reason !== "") ?? (textOf(status, "reason") || phase);
}

function stateReason(container: JsonObject): string {
  const state = objectOf(container, "state") ?? {};
  const waiting = textOf(objectOf(state, "waiting") ?? {}, "reason");
  const terminated = objectOf(state, "terminated");
  if (terminated === undefined || waiting !== "") return waiting;
  return textOf(terminated, "reason") || `ExitCode:${numberIn(terminated, "exitCode")}`;
}
