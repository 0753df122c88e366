import { defined } from "@konverge/core";
import type { PlannedCall, SendPlanned } from "../contract/call-plan.ts";
import { bodyOf, queryOf, type Place } from "./planned-call.ts";
import type { PlannedObjects } from "./planned-objects.ts";
import type { PlannedWrite, SettledWrite } from "./planned-object.ts";

/** A call on its way through a plan. */
export interface Writing {
  readonly objects: PlannedObjects;
  readonly call: PlannedCall;
  readonly live: SendPlanned;
  /** True if the plan covers all reads, because users approve it. */
  readonly isExact: boolean;
}

/** The manager of an apply; undefined for other writes. */
export function applierOf({ verb, path }: PlannedCall): string | undefined {
  return verb === "apply" ? (queryOf(path).get("fieldManager") ?? "") : undefined;
}

export function writeOf(
  call: PlannedCall,
  { subresource }: Pick<Place, "subresource">,
): SettledWrite {
  const { verb, path } = call;
  const fieldManager = queryOf(path).get("fieldManager") ?? undefined;
  const intent = verb === "apply" ? bodyOf(call) : undefined;
  const given = call.body;
  return { verb: VERBS[verb] ?? "patch", ...defined({ subresource, fieldManager, intent, given }) };
}

const VERBS: Partial<Record<PlannedCall["verb"], PlannedWrite["verb"]>> = {
  create: "create",
  update: "update",
  apply: "apply",
  delete: "delete",
};
