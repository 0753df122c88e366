import { toMs, type Duration } from "@konverge/core";
import { invalidCondition } from "./wait-target.ts";

/** The options of `w.waitFor`. */
export interface WaitForOptions {
  /** Longest wait; then it fails and names the unmet condition. Default: no limit. */
  readonly timeout?: Duration;
  /**
   * How long an object must report a failure before the wait fails. Default 30 s, because a Deployment past its deadline may
   * still recover. 0 fails immediately; `never` waits for the timeout.
   */
  readonly failFast?: Duration | "never";
  /**
   * Behavior if the spec of an object changes after the step that wrote it. `continue` (default) waits for the newer spec;
   * `fail` fails the wait with `superseded`.
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
