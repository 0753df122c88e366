import type { AttemptRecord } from "@konverge/records";

type Unlanded = AttemptRecord["conflicts"][number];

/** What one write met that did not land: several races, for one target. */
export interface LostWrite {
  readonly target: Pick<Unlanded, "resource" | "namespace" | "name" | "subresource">;
  readonly conflicts: readonly Unlanded[];
}

/** The races of an attempt by what they were about, in their order. */
export function lostWritesOf({ conflicts }: AttemptRecord): LostWrite[] {
  const groups = Map.groupBy(conflicts, ({ resource, namespace = "", name, subresource = "" }) =>
    [resource, namespace, name, subresource].join("\n"),
  );
  return [...groups.values()].flatMap((group) => {
    const [target] = group;
    return target === undefined ? [] : [{ target, conflicts: group }];
  });
}
