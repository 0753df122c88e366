import type { AttemptRecord } from "@konverge/records";
import type { FieldOwner } from "@konverge/kube";
import { changesOf } from "./patch-changes.ts";

/** The owner of a field and the attempt that wrote it. */
export interface Blame extends FieldOwner {
  /** Number of the attempt, if the controller wrote the field and the record still exists. */
  readonly attempt?: number;
}

export interface BlameTarget {
  readonly controller: string;
  /** `plural.group`. */
  readonly resource: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** Combines the field owners of the API server with the attempt records, newest first. */
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

/** A list is written as a whole, so its items were written with it. */
function covers(written: string, owned: string): boolean {
  return written === owned || owned.startsWith(`${written}[`) || owned.startsWith(`${written}.`);
}
