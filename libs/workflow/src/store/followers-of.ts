import { defined } from "@konverge/core";
import { refOf } from "./run-fields.ts";
import type { Followers } from "./run-journal-store.ts";
import type { FollowerNames } from "./scripts/followers.ts";

/** Returns what continues when a run of this workflow ends. */
export function followersOf(workflow: string, names: FollowerNames): Followers {
  const parent = refOf(names.parentWorkflow, names.parent);
  const next = refOf(workflow, names.next);
  return {
    ...defined({ parent, next }),
    ...(names.notify === "" ? {} : { notify: names.notify }),
    ...(names.slotTo.length === 0 ? {} : { slotTo: names.slotTo.map((id) => ({ workflow, id })) }),
  };
}
