import { defined } from "@konverge/core";
import type { AttemptRecord } from "@konverge/records";
import { expect, test } from "vitest";
import { blameFields } from "./blame-fields.ts";

const TARGET = { controller: "web", resource: "pools.demo", namespace: "demo", name: "blue" };
type Write = AttemptRecord["writes"][number];

type Attempt = Pick<AttemptRecord, "epoch" | "writes">;

function attempt(epoch: number, ...writes: readonly Partial<Write>[]): Attempt {
  const { resource, namespace, name } = TARGET;
  const defaults: Write = { verb: "patch", resource, namespace, name, conflicts: [] };
  return { epoch, writes: writes.map((write) => ({ ...defaults, ...write })) };
}
const owner = (path: string, manager = "konverge/web", subresource?: string) => ({
  path,
  manager,
  operation: "Update",
  ...defined({ subresource }),
});
const blamed = (attempts: readonly Attempt[], ...owners: ReturnType<typeof owner>[]) =>
  blameFields(owners, attempts, TARGET).map(({ attempt: number }) => number);

test("names the newest attempt that wrote a field, including its items", () => {
  const attempts = [
    attempt(9, { patch: { spec: { replicas: 5 } } }),
    attempt(7, { patch: { spec: { ports: [{ name: "web" }] } } }),
    attempt(5, { patch: { spec: { replicas: 3 }, metadata: { labels: { a: "b" } } } }),
  ];
  expect(
    blamed(
      attempts,
      owner("spec.replicas"),
      owner("spec.ports[name=web].port"),
      owner("metadata.labels.a"),
      owner("spec.replicasMax"),
    ),
  ).toEqual([9, 7, 5, undefined]);
});

test("ignores other managers, objects and subresources", () => {
  const patch = { spec: { replicas: 5 } };
  expect(blamed([attempt(9, { patch })], owner("spec.replicas", "kubectl"))).toEqual([undefined]);
  const elsewhere = [attempt(9, { patch, name: "red" }), attempt(8, { patch, namespace: "x" })];
  expect(blamed(elsewhere, owner("spec.replicas"))).toEqual([undefined]);
  const status = [attempt(9, { patch: { status: { n: 1 } }, subresource: "status" })];
  expect(blamed(status, owner("status.n", "konverge/web", "status"), owner("status.n"))).toEqual([
    9,
    undefined,
  ]);
});

test("assigns fields without later writes to the create", () => {
  const attempts = [attempt(4, { patch: { spec: { a: 1 } } }), attempt(1, { verb: "create" })];
  expect(blamed(attempts, owner("spec.a"), owner("spec.b"))).toEqual([4, 1]);
});
