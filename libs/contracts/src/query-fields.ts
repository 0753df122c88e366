import { z } from "zod";

const BAD_TEXT = "must have 1 to 253 characters";

/** A name or part of a name in a query. */
export const text: z.ZodString = z.string(BAD_TEXT).min(1, BAD_TEXT).max(253, BAD_TEXT);

const BAD_CURSOR = 'must be the "next" of an earlier response';

/** A cursor made of an ID in a Redis stream. Redis rejects longer numbers. */
export const streamCursor: z.ZodString = z
  .string(BAD_CURSOR)
  .regex(/^\d{1,15}-\d{1,15}$/, BAD_CURSOR);

/** A number in a query, from 1 to `most`. */
export function wholeNumber(most: number): z.ZodCoercedNumber {
  const message = `must be a whole number from 1 to ${most}`;
  return z.coerce.number(message).int(message).min(1, message).max(most, message);
}

/** Returns the message for values outside of a list. */
export function oneOf(values: readonly string[]): string {
  return `must be one of ${values.join(", ")}`;
}
