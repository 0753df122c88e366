import { ensureError, parseKey } from "@konverge/core";
import type { ApprovalStore, WorkQueue } from "@konverge/queue";
import type { Controller } from "../define/define-controller.ts";
import type { Log } from "../define/log.ts";

/** Time between two looks for approved plans, in ms. The API requests them as well; this covers its crash in between. */
const AGAIN_MS = 5_000;

interface Part {
  readonly controller: Controller;
  readonly queue: WorkQueue;
}

/** Requests the keys whose plans are approved and not applied yet. Returns the function that ends it. */
export function requestApproved(
  parts: readonly Part[],
  { approvals, log }: { readonly approvals?: ApprovalStore; readonly log: Log },
): () => void {
  const needy = parts.filter(({ controller }) => controller.approval !== undefined);
  if (approvals === undefined || needy.length === 0) return () => undefined;
  const sweep = async () => {
    for (const text of await approvals.due()) {
      const key = parseKey(text);
      const part = needy.find(({ controller }) => controller.name === key.controller);
      await part?.queue.request(key, { kind: "signal", by: "approval", reason: "plan approved" });
    }
  };
  const timer = setInterval(() => {
    sweep().catch((error: unknown) => {
      log.debug({ err: ensureError(error) }, "approved plans not requested, Redis unavailable");
    });
  }, AGAIN_MS);
  return () => clearInterval(timer);
}
