import type { ChildStarter } from "../../libs/workflow/src/execution/await-child.ts";

/** For executions without other runs. */
export const noChildren: ChildStarter = {
  start: async ({ id }) => ({ id, created: true }),
  cancel: async () => undefined,
  terminate: async () => undefined,
  get: async () => undefined,
  signal: async () => "missing",
};
