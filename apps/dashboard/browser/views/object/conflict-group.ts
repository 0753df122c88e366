import type { AttemptRecord } from "@konverge/records";

type Conflict = AttemptRecord["conflicts"][number];

/** A write that did not succeed, with its conflicts. */
export interface LostWrite {
  readonly target: Pick<Conflict, "resource" | "namespace" | "name" | "subresource">;
  readonly conflicts: readonly Conflict[];
}

/** Groups the conflicts of an attempt by target, in chronological order. */
export function lostWritesOf({ conflicts }: AttemptRecord): LostWrite[] {
  const groups = Map.groupBy(conflicts, ({ resource, namespace = "", name, subresource = "" }) =>
    [resource, namespace, name, subresource].join("\n"),
  );
  return [...groups.values()].flatMap((group) => {
    const [target] = group;
    return target === undefined ? [] : [{ target, conflicts: group }];
  });
}
