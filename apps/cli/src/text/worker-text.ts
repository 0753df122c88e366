import type { Worker } from "@konverge/client";
import { age } from "./age.ts";
import { columns } from "./columns.ts";

/** Formats live workers, a line each. */
export function workerRows(workers: readonly Worker[]): string {
  return columns([
    ["WORKER", "ROLE", "AGE", "VERSION", "HOST", "SLOTS", "LEADS", "CONTROLLERS", "WORKFLOWS"],
    ...workers.map(({ load, controllers, workflows = {}, ...worker }) => [
      worker.workerId,
      worker.role,
      age(worker.startedAt),
      worker.version,
      worker.host,
      slotsText(load),
      load?.leads === undefined ? "-" : `${load.leads.length} of ${controllers.length}`,
      controllers.join(", "),
      Object.keys(workflows).join(", "),
    ]),
  ]);
}

/** Used slots of all slots. */
function slotsText(load: Worker["load"]): string {
  if (load === undefined) return "-";
  const slots = Object.values(load.slots);
  const sum = (of: "running" | "limit") => slots.reduce((all, each) => all + each[of], 0);
  return `${sum("running")} of ${sum("limit")}`;
}
