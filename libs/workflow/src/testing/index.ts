export { replay } from "./replay.ts";
export { testWorkflow } from "./test-workflow.ts";
export type { TestChild, TestRun, TestWorkflowOptions } from "./test-workflow.ts";
