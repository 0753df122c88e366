import type { ChildStarter } from "../../libs/workflow/src/execution/await-child.ts";

/** For executions without other runs. */
export const noChildren: ChildStarter = {
  start: async () => undefined,
  cancel: async () => undefined,
  get: async () => undefined,
  signal: async () => "missing",
};
