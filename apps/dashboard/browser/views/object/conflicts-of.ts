import type { AttemptRecord } from "@konverge/records";

/** Returns the number of conflicts of an attempt. */
export function conflictsOf({ writes, conflicts }: AttemptRecord): number {
  return writes.reduce((sum, write) => sum + write.conflicts.length, conflicts.length);
}

/** Returns the number of an attempt in addresses and in the CLI. */
export function numberOf({ epoch, attempt }: AttemptRecord): string {
  return String(epoch ?? attempt);
}
