import type { Deployment } from "@konverge/kube/kinds";
import { expect, test } from "vitest";
import { defineWorkflow } from "./define-workflow.ts";
import type { ObjectRef } from "@konverge/kube";
import { gone, ready } from "./object-conditions.ts";
import { all, any } from "./wait-condition.ts";
import type { WaitTarget } from "./wait-target.ts";

test("reports all issues of a definition together", () => {
  const define = () =>
    defineWorkflow(
      "Not a name",
      { version: 0, accepts: [3], kinds: ["Pod"] as never, limits: { steps: 0 } },
      undefined as unknown as () => Promise<void>,
    );
  expect(define).toThrow(
    /name "Not a name".*version must be an integer >= 1 \(got 0\).*accepts.*kinds.*limits\.steps must be an integer from 1 to 100000 \(got 0\).*third argument/s,
  );
});

type DeploymentObject = NonNullable<(typeof Deployment)["objectType"]>;
const podRef: WaitTarget = { apiVersion: "v1", kind: "Pod", name: "a" };

/** Not run: the compiler is what is tested. A line that would compile after all is an error itself. */
defineWorkflow("types", { version: 1 }, async (w) => {
  const text = await w.step("text", async () => ({
    a: "text",
    b: [1, null],
    c: undefined as number | undefined,
  }));
  text.a.toUpperCase();
  interface Named {
    readonly name: string;
  }
  const named: Named = await w.step("named", (): Named => ({ name: "x" }), {
    undo: (result) => void result?.name,
  });
  await w.step("nothing", async ({ signal, attempt }) => void [signal, attempt]);
  // @ts-expect-error a Date becomes text
  await w.step("date", async () => new Date());
  // @ts-expect-error a bigint cannot be serialized
  await w.step("bigint", async () => ({ deep: [1n] }));
  // @ts-expect-error a Map becomes empty
  await w.step("map", () => new Map<string, string>());
  // @ts-expect-error a function cannot be serialized
  await w.step("function", () => () => 1);
  // @ts-expect-error a step in a step
  await w.step("outer", () => w.step("inner", async () => 1));
  const named2: ObjectRef = await w.waitFor("ready", ready(podRef));
  const [first, second]: [ObjectRef, WaitTarget] = await w.waitFor(
    "both",
    all(ready(named2), gone(podRef)),
  );
  const either = await w.waitFor("either", any(ready(first), gone(second)));
  const index: number = either.index;
  void index;
  // @ts-expect-error a wait for objects in a step
  await w.step("wait for", () => w.waitFor("it", ready(podRef)));
  // @ts-expect-error a wait in a step
  await w.step("wait", () => w.sleep("pause", "1s"));
  const ref = await w.step(
    "apply",
    (k) => k.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "x" } }),
    {
      undo: (_, k) => k.delete({ apiVersion: "v1", kind: "Namespace", name: "x" }),
    },
  );
  ref.uid.toUpperCase();
  // @ts-expect-error objects are not recorded
  await w.step("get", (k) => k.get(ref));
  // @ts-expect-error nor those of deep types
  await w.step("get typed", (k) => k.get<DeploymentObject>(ref));
  // @ts-expect-error nor lists of them
  await w.step("list", (k) =>
    k.list<DeploymentObject>({ apiVersion: "apps/v1", kind: "Deployment" }),
  );
  const replicas = await w.step(
    "part",
    async (k) => (await k.find<DeploymentObject>(ref))?.spec?.replicas ?? 0,
  );
  replicas.toFixed();
  // @ts-expect-error objects returned by reads are frozen
  await w.step("change", async (k) => void ((await k.get(ref)).metadata.labels = {}));
  const answer = await w.signal<{ ok: boolean }>("approve", { timeout: "1h" });
  // @ts-expect-error null after the timeout
  void answer.ok;
  return named.name;
});
// @ts-expect-error the result of the run is recorded too
defineWorkflow("result", { version: 1 }, async () => ({ at: new Date() }));
