import { KonvergeError } from "@konverge/core";

/** The reply of a script. Lua's false and nil become null, true becomes 1, and numbers are truncated to integers. */
export type Reply = string | number | null | Error | readonly Reply[];

/** All functions of this file throw a KonvergeError `internal` for an unexpected reply. */
export function replyList(reply: Reply | undefined): readonly Reply[] {
  return Array.isArray(reply) ? (reply as readonly Reply[]) : refuse(reply);
}

export function replyTexts(reply: Reply | undefined): string[] {
  return replyList(reply).map(replyText);
}

/** Returns a text. Numbers become their digits. */
export function replyText(reply: Reply | undefined): string {
  if (typeof reply === "string") return reply;
  return typeof reply === "number" ? String(reply) : refuse(reply);
}

export function replyNumber(reply: Reply | undefined): number {
  if (typeof reply === "number") return reply;
  const number = typeof reply === "string" && reply !== "" ? Number(reply) : Number.NaN;
  return Number.isNaN(number) ? refuse(reply) : number;
}

/** Returns true for Lua's 1, false for 0. */
export function replyFlag(reply: Reply | undefined): boolean {
  return reply === 1 || (reply === 0 ? false : refuse(reply));
}

/** Returns the reply if it is one of `words`. */
export function replyWord<const Word extends string>(
  reply: Reply | undefined,
  words: readonly Word[],
): Word {
  return words.find((word) => word === reply) ?? refuse(reply);
}

/** Returns a list whose first element is its kind. */
export function replyTagged(reply: Reply | undefined): readonly [string, ...Reply[]] {
  const [tag, ...rest] = replyList(reply);
  return [replyText(tag), ...rest];
}

/** @throws the error that a script returned for one of its items */
function refuse(reply: Reply | undefined): never {
  if (reply instanceof Error) throw reply;
  throw new KonvergeError("internal", `unexpected reply of a script: ${JSON.stringify(reply)}`);
}
