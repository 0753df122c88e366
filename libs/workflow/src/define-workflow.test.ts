import { expect, test } from "vitest";
import { defineWorkflow } from "./define-workflow.ts";

test("everything that is wrong with a definition is said at once", () => {
  const define = () =>
    defineWorkflow(
      "Not a name",
      { version: 0, accepts: [3] },
      undefined as unknown as () => Promise<void>,
    );
  expect(define).toThrow(/name "Not a name".*version 0.*accepts.*third argument/s);
});

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
  // @ts-expect-error a Date comes back as text
  await w.step("date", async () => new Date());
  // @ts-expect-error a bigint does not come back at all
  await w.step("bigint", async () => ({ deep: [1n] }));
  // @ts-expect-error a Map comes back empty
  await w.step("map", () => new Map<string, string>());
  // @ts-expect-error a function is no data
  await w.step("function", () => () => 1);
  // @ts-expect-error a step in a step
  await w.step("outer", () => w.step("inner", async () => 1));
  // @ts-expect-error a wait in a step
  await w.step("wait", () => w.sleep("pause", "1s"));
  const ref = await w.step(
    "apply",
    (k) => k.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "x" } }),
    {
      undo: (made, k) => k.delete(made ?? { apiVersion: "v1", kind: "Namespace", name: "x" }),
    },
  );
  ref.uid.toUpperCase();
  // @ts-expect-error objects are not recorded
  await w.step("get", (k) => k.get(ref));
  // @ts-expect-error what was read is not to be changed
  await w.step("change", async (k) => void ((await k.get(ref))!.metadata.labels = {}));
  const answer = await w.signal<{ ok: boolean }>("approve", { timeout: "1h" });
  // @ts-expect-error null when the time is over
  void answer.ok;
  return named.name;
});
// @ts-expect-error the result of the run is recorded too
defineWorkflow("result", { version: 1 }, async () => ({ at: new Date() }));
