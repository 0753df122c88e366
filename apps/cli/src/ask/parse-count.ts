import { InvalidArgumentError } from "commander";

/** Parses a whole number from 1. */
export function parseCount(text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new InvalidArgumentError("Use a whole number from 1.");
}
