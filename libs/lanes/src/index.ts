export { createObjectLanes } from "./object-lanes.ts";
export type { LaneTurn, ObjectLanes, ObjectLanesOptions } from "./object-lanes.ts";
