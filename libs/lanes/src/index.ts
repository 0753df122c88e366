export { createObjectLanes } from "./object-lanes.ts";
export type { LaneHold, ObjectLanes, ObjectLanesOptions } from "./object-lanes.ts";
export { carriedAs } from "./carried-as.ts";
