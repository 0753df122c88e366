import { findUseIssue, KonvergeError, toMs, type Duration, type LimitUse } from "@konverge/core";
import type { RetryOptions, StepOptions } from "../define/define-workflow.ts";

/** Stored heartbeats cost a third of this time each. */
const MIN_HEARTBEAT_MS = 1_000;

/**
 * Checks the options at the call, where the function's author sees the error; the attempts of a step would only repeat it.
 * @throws KonvergeError `invalid_config` naming the option
 */
export function checkStepOptions(
  name: string,
  { timeout, heartbeatTimeout, retry, limit, spread }: StepOptions<never>,
): void {
  if (spread !== undefined && typeof spread !== "boolean") {
    const detail = `spread of step "${name}" must be true or false (got ${String(spread)})`;
    throw new KonvergeError("invalid_config", detail);
  }
  checkLimit(name, limit);
  if (timeout !== undefined) toMs(timeout, `the timeout of step "${name}"`);
  checkHeartbeats(name, heartbeatTimeout);
  checkDelay(name, retry);
  const attempts = retry?.attempts;
  if (attempts === undefined || attempts === Infinity) return;
  if (Number.isSafeInteger(attempts) && attempts >= 1) return;
  throw new KonvergeError(
    "invalid_config",
    `retry.attempts of step "${name}" is ${attempts}; write an integer >= 1, or Infinity`,
  );
}

function checkLimit(name: string, limit: string | LimitUse | undefined): void {
  if (limit === undefined) return;
  const issue = findUseIssue(limitUse(limit));
  if (issue === undefined) return;
  throw new KonvergeError("invalid_config", `limit of step "${name}" ${issue}`);
}

/** Returns the use that an option names. */
export function limitUse(limit: string | LimitUse): LimitUse {
  return typeof limit === "string" ? { name: limit } : limit;
}

function checkHeartbeats(name: string, timeout: Duration | undefined): void {
  if (timeout === undefined) return;
  const what = `heartbeatTimeout of step "${name}"`;
  if (toMs(timeout, what) >= MIN_HEARTBEAT_MS) return;
  throw new KonvergeError("invalid_config", `${what} must be at least 1s (got ${timeout})`);
}

function checkDelay(name: string, { delay, policy }: RetryOptions = {}): void {
  if (delay === undefined) return;
  if (policy !== undefined) {
    const detail = `step "${name}" has both retry.delay and retry.policy; keep one of them`;
    throw new KonvergeError("invalid_config", detail);
  }
  if (toMs(delay, `retry.delay of step "${name}"`) >= 1) return;
  throw new KonvergeError("invalid_config", `retry.delay of step "${name}" must be at least 1ms`);
}
