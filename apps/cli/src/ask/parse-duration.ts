import { duration } from "@konverge/contracts";
import { InvalidArgumentError } from "commander";

/** Parses a flag such as `--timeout 60s` into ms. */
export function parseDuration(text: string): number {
  const parsed = duration.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new InvalidArgumentError("Use a number and a unit, such as 30s, 10m or 250ms.");
}
