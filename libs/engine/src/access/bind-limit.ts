import { formatKey, KonvergeError, LimitWaitError } from "@konverge/core";
import type { UseLimit } from "../define/reconcile-context.ts";
import type { Attempt } from "./attempt.ts";

/** Longest wait of an attempt before its first permit, in ms; longer ones occupy no worker. */
const FIRST_WAIT_MS = 2_000;
/** Longest time after which a deferred attempt asks again, in ms. A free slot requests it earlier. */
const LONGEST_DEFERRAL_MS = 10_000;

/** Returns the `limit` of a handler's context. */
export function bindLimit(attempt: Attempt): UseLimit {
  const { limits, controller } = attempt.runtime;
  const key = formatKey(attempt.lease.key);
  let uses = 0;
  let permits = 0;
  const useLimit: UseLimit = async (limit, call) => {
    const use = typeof limit === "string" ? { name: limit } : limit;
    if (attempt.plan !== undefined) {
      const about = `the call within limit "${use.name}"`;
      const reason = "it may have effects outside of Kubernetes; wrap it in ctx.external";
      attempt.plan.noteRefusal({ about, reason: `was not made, because ${reason}` });
      throw new KonvergeError("not_plannable", `${about} was not made, because ${reason}`);
    }
    if (limits === undefined) {
      const detail = `limit "${use.name}" is not configured; add it to limits of defineConfig`;
      throw new KonvergeError("invalid_config", detail);
    }
    uses += 1;
    const { signal } = attempt;
    const taken = await limits.take({
      ...use,
      waiter: `${key} ${use.name}#${uses}`,
      // An attempt that has begun its work finishes it: the next one would begin from the start.
      inPlaceMs: permits === 0 ? FIRST_WAIT_MS : controller.timeoutMs / 2,
      signal,
    });
    if (taken.kind === "waiting") {
      throw new LimitWaitError(use, Math.min(LONGEST_DEFERRAL_MS, taken.afterMs));
    }
    permits += 1;
    const { permit } = taken;
    try {
      return await call(AbortSignal.any([signal, permit.signal]));
    } finally {
      permit.release();
    }
  };
  return (limit, call) =>
    attempt.call(async () => {
      const { tape } = attempt;
      if (tape === undefined) return await useLimit(limit, call);
      const name = typeof limit === "string" ? limit : limit.name;
      return await tape.outside(`limit ${name}`, () => useLimit(limit, call));
    });
}
