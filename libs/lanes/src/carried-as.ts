import { formatApiVersion, type JsonObject, type ResourceType } from "@konverge/core";
import type { LaneHold } from "./object-lanes.ts";

/** Returns the object that the previous writer left, unless it wrote another version of the kind: all versions have one lane. */
export function carriedAs(
  { carried }: Pick<LaneHold, "carried">,
  { group, version, kind }: Pick<ResourceType, "group" | "version" | "kind">,
): JsonObject | undefined {
  const isOfType =
    carried?.["apiVersion"] === formatApiVersion(group, version) && carried["kind"] === kind;
  return isOfType ? carried : undefined;
}
