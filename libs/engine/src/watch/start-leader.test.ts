import type { ResourceType } from "@konverge/core";
import { expect, test } from "vitest";
import type { ControllerSource } from "../define/source.ts";
import { seenBy } from "./start-leader.ts";
import { WatchGroup } from "./watch-group.ts";

const type: ResourceType = {
  group: "",
  version: "v1",
  kind: "ConfigMap",
  resource: "configmaps",
  scope: "Namespaced",
};
const source = (option: "for" | "owns"): ControllerSource => ({
  type,
  option,
  predicate: () => true,
});

/** A group whose watch has reached a version. */
function groupAt(lastVersion: string): WatchGroup {
  const scope = {
    type,
    namespaces: undefined,
    namespaceLabels: [],
    labels: undefined,
    fields: undefined,
  };
  const open: unknown = () => ({ reflector: { lastVersion }, store: {} });
  const group = new WatchGroup(scope, open as ConstructorParameters<typeof WatchGroup>[1]);
  group.start();
  return group;
}

test("with several watches of a kind, the newest decides what a reader must have seen", () => {
  const [own, first, second] = [source("for"), source("owns"), source("owns")] as const;
  for (const [one, other] of [
    ["90", "100"],
    ["100", "90"],
  ] as const) {
    const groups = new Map([
      [own, groupAt("200")],
      [first, groupAt(one)],
      [second, groupAt(other)],
    ]);
    const groupOf = (each: ControllerSource) => groups.get(each) ?? groupAt("0");
    expect(
      seenBy({ sources: [own, first, second] }, { groupOf, namespaceVersion: undefined }, "n"),
    ).toEqual({
      configmaps: "100",
    });
  }
});
