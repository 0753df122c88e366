// What generated code imports from `konverge`. To compile all of the package for each test would take most of its time.
export type { ApiObject, ResourceType } from "@konverge/core";
export { rule } from "@konverge/engine";
export { keywords } from "../../apps/cli/src/keywords.ts";
