import type { AttemptRecord } from "@konverge/records";
import { readHistory } from "./object-history.ts";

type Write = AttemptRecord["writes"][number];

/** A conflict that was settled, and the attempt that lived through it. */
interface Found {
  readonly record: AttemptRecord;
  readonly write: Write;
}

/**
 * The story of one real conflict, from the attempt records: who read which version, who wrote meanwhile, who lost, how
 * long it waited, where it landed. Undefined when no record kept one.
 */
export async function reportConflict(
  apiUrl: string,
  namespace: string,
  pools: readonly string[],
): Promise<string[] | undefined> {
  let best: Found | undefined;
  for (const name of pools) {
    for (const controller of ["autoscaler", "node-pool"]) {
      for (const record of await readHistory(apiUrl, { controller, namespace, name })) {
        for (const write of record.writes) {
          // Two in a row tell the most; longer fights repeat themselves.
          const { length } = write.conflicts.filter(
            ({ competingWriters }) => competingWriters.length > 0,
          );
          const complete = length > 0 && length <= 2 && length === write.conflicts.length;
          if (complete && length > (best?.write.conflicts.length ?? 0)) best = { record, write };
        }
      }
    }
  }
  return best === undefined ? undefined : describe(best);
}

function describe({ record, write }: Found): string[] {
  const who = record.controller;
  const lines = [
    `${write.resource} ${write.name}, as recorded by ${who} (attempt ${record.attempt})`,
  ];
  for (const conflict of write.conflicts) {
    lines.push(row(who, "read", `version ${conflict.readVersion}`));
    for (const winner of conflict.competingWriters) {
      lines.push(
        row(winner.manager, "wrote", winner.paths.slice(0, 3).join(", ") || "(fields not told)"),
      );
    }
    lines.push(
      row(who, "lost", `its write from version ${conflict.readVersion} was refused with 409`),
    );
    const found =
      conflict.foundVersion === undefined ? "" : ` and read version ${conflict.foundVersion}`;
    lines.push(row(who, "waited", `${Math.round(conflict.waitedMs)} ms${found}`));
  }
  const patch = write.patch === undefined ? "" : `: ${JSON.stringify(write.patch).slice(0, 70)}`;
  lines.push(row(who, "landed", `as version ${write.toVersion ?? "?"}${patch}`));
  return lines;
}

function row(who: string, what: string, detail: string): string {
  return `  ${who.padEnd(24)} ${what.padEnd(7)} ${detail}`;
}
