import type { AttemptRecord } from "@konverge/records";
import type { FieldOwner } from "@konverge/kube";
import { changesOf } from "./patch-changes.ts";

/** Who owns a field, and which attempt wrote it. */
export interface Blame extends FieldOwner {
  /** Number of the attempt, where it was one of this controller's and its record is still kept. */
  readonly attempt?: number;
}

export interface BlameTarget {
  readonly controller: string;
  /** `plural.group`. */
  readonly resource: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** Joins what the API server says of each field with our records, newest first. */
export function blameFields(
  owners: readonly FieldOwner[],
  attempts: readonly Pick<AttemptRecord, "epoch" | "writes">[],
  target: BlameTarget,
): Blame[] {
  const ours = `konverge/${target.controller}`;
  const written = attempts.flatMap(({ epoch, writes }) =>
    writes
      .filter((write) => isOf(write, target))
      .map(({ patch, subresource, fieldManager, verb }) => ({
        epoch,
        subresource,
        manager: fieldManager ?? ours,
        all: verb === "create" || patch === undefined,
        paths: changesOf(patch).map(({ path }) => path),
      })),
  );
  return owners.map((owner) => {
    if (owner.manager !== ours) return owner;
    const source = written.find(
      ({ manager, subresource, all, paths }) =>
        manager === owner.manager &&
        subresource === owner.subresource &&
        (all || paths.some((path) => covers(path, owner.path))),
    );
    return source?.epoch === undefined ? owner : { ...owner, attempt: source.epoch };
  });
}

function isOf(
  write: AttemptRecord["writes"][number],
  { resource, namespace, name }: BlameTarget,
): boolean {
  return write.resource === resource && write.name === name && write.namespace === namespace;
}

/** A list is written whole, so what lies in it was written with it. */
function covers(written: string, owned: string): boolean {
  return written === owned || owned.startsWith(`${written}[`) || owned.startsWith(`${written}.`);
}
