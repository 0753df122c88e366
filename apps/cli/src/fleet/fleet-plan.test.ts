import type { PlanRecord } from "@konverge/records";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { FleetPlan } from "./fleet-plan.ts";
import { fleetText } from "./fleet-text.ts";
import { openProgressFile } from "./progress-file.ts";

const NONE = { created: 0, changed: 0, deleted: 0, replaced: 0, unchanged: 0 };

function planOf(
  changes: readonly Pick<PlanRecord["changes"][number], "action" | "name" | "patch">[],
  more: Partial<PlanRecord> = {},
): PlanRecord {
  const summary = { ...NONE };
  for (const { action } of changes) summary[action] += 1;
  return {
    complete: true,
    gaps: [],
    externals: [],
    runs: [],
    summary,
    changes: changes.map((change) => ({ kind: "ConfigMap", namespace: "demo", ...change })),
    ...more,
  } as unknown as PlanRecord;
}

function fleetOf(plans: readonly PlanRecord[]): FleetPlan {
  const fleet = new FleetPlan();
  plans.forEach((plan, index) => fleet.add(FleetPlan.entryOf(`key-${index}`, plan)));
  return fleet;
}

describe("the plan of a fleet", () => {
  test("has the same groups and examples in whatever order the plans end", () => {
    const plans = Array.from({ length: 20 }, (_, index) =>
      planOf([{ action: index % 2 === 0 ? "deleted" : "created", name: `map-${index}` }]),
    );
    expect(fleetOf(plans.toReversed()).groups).toEqual(fleetOf(plans).groups);
  });

  test("groups equal changes, and counts those that plans do not list", () => {
    const labelled = (name: string) =>
      planOf([{ action: "changed", name, patch: { metadata: { labels: { x: "1" } } } }]);
    const fleet = fleetOf([
      planOf([{ action: "unchanged", name: "same" }]),
      ...Array.from({ length: 7 }, (_, index) => labelled(`map-${index}`)),
      planOf([{ action: "replaced", name: "new" }]),
      planOf([{ action: "deleted", name: "old" }], { summary: { ...NONE, deleted: 3 } }),
      planOf([], { runs: [{ workflow: "ship" }], externals: ["bill", "mail"] }),
      planOf([], { complete: false, error: { code: "timed_out", message: "too slow" } }),
    ]);
    expect(fleet).toMatchObject({
      planned: 12,
      unchanged: 1,
      changes: 11,
      deletes: 4,
      unlisted: 2,
      runs: 1,
      externals: 2,
    });
    expect(fleetText(fleet).split("\n")).toEqual([
      "12 objects planned, 1 without changes",
      "7 ConfigMap changed: metadata.labels.x",
      "    demo/map-0, demo/map-1, demo/map-2, demo/map-3, demo/map-4 and 2 more",
      "1 ConfigMap deleted",
      "    demo/old",
      "1 ConfigMap replaced",
      "    demo/new",
      "2 further objects changed, not listed",
      "1 workflow runs would start",
      "2 calls of ctx.external would be made",
      "1 plans are incomplete",
      "    key-11: too slow",
    ]);
  });

  test("a file of a killed command resumes after its last whole line", () => {
    const path = join(mkdtempSync(join(tmpdir(), "konverge-fleet-")), "plans.jsonl");
    const first = FleetPlan.entryOf("one", planOf([{ action: "deleted", name: "old" }]));
    const query = { cluster: "default", controller: "maps" };
    expect(openProgressFile(path, query).since).toBeUndefined();
    openProgressFile(path, query).append(first);
    writeFileSync(path, `${readFileSync(path, "utf8")}{"key":"tw`);
    const resumed = openProgressFile(path, query);
    expect(resumed.since).toMatch(/^\d{4}-/);
    expect(resumed.find("one")).toEqual(first);
    resumed.append({ ...first, key: "three" });
    expect(openProgressFile(path, query).find("three")).toBeDefined();
    expect(() => openProgressFile(path, { cluster: "default" })).toThrow(
      /has plans of cluster default, controller maps, namespace \*, not of .* controller \*/,
    );
    writeFileSync(path, "something else\n");
    expect(() => openProgressFile(path, query)).toThrow(
      /--resume: .* has a line that is not a plan/,
    );
  });
});
