import { bucketSize, LARGEST_FLOOR, type GateCall, type GuardLimits } from "@konverge/core";

/** Returns the cost of a call in tokens, at most what the lowest class can hold: a higher cost would never be granted. */
export function costOf({ cost = 1 }: GateCall, limits: GuardLimits): number {
  const most = Math.floor((1 - LARGEST_FLOOR) * bucketSize(limits));
  return Math.max(1, Math.min(Math.ceil(cost), most));
}
