import type { Worker } from "@konverge/client";
import { age } from "./age.ts";
import { columns } from "./columns.ts";

/** Formats live workers, a line each. */
export function workerRows(workers: readonly Worker[]): string {
  return columns([
    ["WORKER", "ROLE", "AGE", "VERSION", "HOST", "CONTROLLERS", "WORKFLOWS"],
    ...workers.map(({ workerId, role, startedAt, version, host, controllers, workflows = {} }) => [
      workerId,
      role,
      age(startedAt),
      version,
      host,
      controllers.join(", "),
      Object.keys(workflows).join(", "),
    ]),
  ]);
}
