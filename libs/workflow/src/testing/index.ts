export { replay } from "./replay.ts";
export { testWorkflow } from "./test-workflow.ts";
export type {
  TestChild,
  TestRetryOptions,
  TestRun,
  TestSchedule,
  TestWorkflowOptions,
} from "./test-run.ts";
