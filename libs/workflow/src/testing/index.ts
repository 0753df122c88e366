export { replay } from "./replay.ts";
export { testWorkflow } from "./test-workflow.ts";
export type { TestRun, TestWorkflowOptions } from "./test-workflow.ts";
