import { KonvergeError } from "@konverge/core";
import type { OperatorAction } from "../contract/pause.ts";

const MAX_CHARS = 200;

/** @throws KonvergeError `invalid_request`, naming the field. */
export function checkOperatorAction({ by, reason }: OperatorAction): OperatorAction {
  for (const [field, text, what] of [
    ["by", by, "who"],
    ["reason", reason, "why"],
  ] as const) {
    const { length } = text.trim();
    if (length > 0 && length <= MAX_CHARS) continue;
    const detail = `say ${what}, in at most ${MAX_CHARS} characters`;
    throw new KonvergeError("invalid_request", `${field}: ${detail}`, {
      issues: [{ pointer: `/${field}`, detail }],
    });
  }
  return { by: by.trim(), reason: reason.trim() };
}
