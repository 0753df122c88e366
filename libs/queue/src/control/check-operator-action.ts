import { KonvergeError } from "@konverge/core";
import type { OperatorAction } from "../contract/pause.ts";

const MAX_CHARS = 200;

/** Trims both texts. @throws KonvergeError `invalid_request` with the field */
export function checkOperatorAction({ by, reason }: OperatorAction): OperatorAction {
  for (const [field, text] of Object.entries({ by, reason })) {
    const { length } = text.trim();
    if (length > 0 && length <= MAX_CHARS) continue;
    const detail = `is required, with at most ${MAX_CHARS} characters`;
    throw new KonvergeError("invalid_request", `${field}: ${detail}`, {
      issues: [{ pointer: `/${field}`, detail }],
    });
  }
  return { by: by.trim(), reason: reason.trim() };
}
