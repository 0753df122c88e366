import type { Fault } from "@konverge/core";

/** Returns the id of a fault, which identifies it in messages. */
export function faultId({ event, subject }: Pick<Fault, "event" | "subject">): string {
  return `${event}/${subject}`;
}
