import type { CallExternal } from "../define/reconcile-context.ts";
import type { Attempt } from "./attempt.ts";

/** Returns the `external` of a handler's context. */
export function bindExternal(attempt: Attempt): CallExternal {
  return async <T>(
    name: string,
    call: () => T | Promise<T>,
    options?: { readonly planned: T },
  ): Promise<T> =>
    await attempt.call(async () => {
      const shown = attempt.trace.secrets.scrub(name);
      if (attempt.tape !== undefined) return await attempt.tape.outside(shown, call);
      if (attempt.plan === undefined) {
        await attempt.hold?.external(shown);
        return await call();
      }
      attempt.plan.noteExternal(shown);
      // Without `planned`, the type of the result includes undefined.
      return options?.planned as T;
    });
}
