import { KonvergeError } from "@konverge/core";

/** The position of a reader in each source of events. */
export interface EventCursor {
  /** Ids of Redis streams. */
  readonly attempt: string;
  readonly change: string;
  /** Unix ms of a breaker transition. */
  readonly guardMs: number;
}

export function formatCursor({ attempt, change, guardMs }: EventCursor): string {
  return `${attempt}.${change}.${guardMs}`;
}

/** @throws KonvergeError `invalid_request` */
export function parseCursor(text: string): EventCursor {
  const [, attempt, change, guardMs] =
    /^(\d{1,15}-\d{1,15})\.(\d{1,15}-\d{1,15})\.(\d{1,15})$/.exec(text) ?? [];
  if (attempt !== undefined && change !== undefined) {
    return { attempt, change, guardMs: Number(guardMs) };
  }
  const detail = `Last-Event-ID must be the ID of an event (got "${text}")`;
  throw new KonvergeError("invalid_request", detail, {
    issues: [{ pointer: "/last-event-id", detail }],
  });
}

/** True if a stream ID comes after the other one. */
export function isBehind(one: string, other: string): boolean {
  const [ms = 0, serial = 0] = one.split("-").map(Number);
  const [otherMs = 0, otherSerial = 0] = other.split("-").map(Number);
  return ms === otherMs ? serial > otherSerial : ms > otherMs;
}
