import { toMs, type Duration } from "@konverge/core";
import { invalidCondition } from "./wait-target.ts";

export interface WaitForOptions {
  /** How long to wait at most; then the wait fails and says what was lacking. Default: for ever. */
  readonly timeout?: Duration;
  /**
   * How long an object must say that it has failed before the wait does. Default 30 s: a Deployment past its deadline may still come
   * up. 0 fails at the first sight of it; `never` leaves it to the timeout.
   */
  readonly failFast?: Duration | "never";
  /**
   * What happens when somebody changes the spec of an object behind the step that wrote it. `continue` (default) waits until the newer
   * spec is ready; `fail` fails the wait with `superseded`.
   */
  readonly onNewSpec?: "continue" | "fail";
}

const FAIL_FAST = "30s";

/** @throws KonvergeError `invalid_config` or `invalid_workflow` naming the option */
export function readWaitOptions(
  name: string,
  { timeout, failFast = FAIL_FAST, onNewSpec = "continue" }: WaitForOptions,
): {
  readonly timeoutMs: number | undefined;
  readonly failFastMs: number;
  readonly failsOnNewSpec: boolean;
} {
  if (onNewSpec !== "continue" && onNewSpec !== "fail") {
    throw invalidCondition(
      `onNewSpec of waitFor "${name}" is "${String(onNewSpec)}"; write "continue" or "fail"`,
    );
  }
  return {
    timeoutMs:
      timeout === undefined ? undefined : toMs(timeout, `the timeout of waitFor "${name}"`),
    failFastMs: failFast === "never" ? Infinity : toMs(failFast, `failFast of waitFor "${name}"`),
    failsOnNewSpec: onNewSpec === "fail",
  };
}
