import { duration } from "@konverge/contracts";
import { InvalidArgumentError } from "commander";

/** A flag such as `--timeout 60s`, in ms. */
export function parseDuration(text: string): number {
  const parsed = duration.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new InvalidArgumentError("Write a number and a unit, such as 30s, 10m or 250ms.");
}
