import { KonvergeError, type ApiObject } from "@konverge/core";
import { atLeast, MUST_READ, type MutateResult } from "@konverge/kube";
import { expect, test } from "vitest";
import { createWriteGroups, type TakenOutcome, type WaitingChange } from "./write-group.ts";

type Change = WaitingChange["change"];

const object = (): ApiObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "hot", uid: "u", resourceVersion: "5" },
});
const set =
  (field: string): Change =>
  (draft) => {
    draft.metadata.labels = { ...draft.metadata.labels, [field]: "yes" };
  };

function setUp() {
  const clock = { ms: 0 };
  const groups = createWriteGroups(() => clock.ms);
  const outcomes: Promise<TakenOutcome>[] = [];
  const wait = (change: Change, more: Partial<WaitingChange> = {}) =>
    groups.wait("hot", {
      change,
      uid: undefined,
      read: MUST_READ,
      isOpen: () => true,
      onTaken: (outcome) => outcomes.push(outcome),
      ...more,
    });
  /** As if the API server had taken the write. */
  const lead = async (own: Change) => {
    const company = groups.take("hot", { uid: "u", read: MUST_READ });
    if (company === undefined) return undefined;
    const draft = object();
    await company.join(own)(draft);
    const written: MutateResult<ApiObject> = {
      kind: "updated",
      object: draft,
      tries: 1,
      lost: 0,
      beforeVersion: "5",
      before: object(),
    };
    return { company, draft, own: company.settle(written), others: await Promise.all(outcomes) };
  };
  return { clock, groups, wait, lead, outcomes };
}

test("writes waiting changes together and returns each its own part", async () => {
  const { wait, lead } = setUp();
  wait(set("b"));
  wait(set("c"));
  const led = await lead(set("a"));
  expect(led?.draft.metadata.labels).toEqual({ a: "yes", b: "yes", c: "yes" });
  const patches = [
    led?.own,
    ...(led?.others.map((one) => one.kind === "written" && one.result) ?? []),
  ];
  expect(patches.map((one) => one && one.patch)).toEqual(
    ["a", "b", "c"].map((field) => ({ metadata: { labels: { [field]: "yes" } } })),
  );
});

test("takes no change twice, and none that stopped waiting", async () => {
  const { wait, lead } = setUp();
  const stop = wait(set("b"));
  stop();
  expect(await lead(set("a"))).toBeUndefined();
  wait(set("c"));
  await lead(set("a"));
  expect(await lead(set("a"))).toBeUndefined();
});

test.each([
  { who: "an attempt that has ended", more: { isOpen: () => false } },
  { who: "a change of another object of that name", more: { uid: "other" } },
])("$who is not taken along", async ({ more }) => {
  const { wait, lead } = setUp();
  wait(set("b"), more);
  expect(await lead(set("a"))).toBeUndefined();
});

test("P8: an attempt that ended after it was taken adds nothing to the write", async () => {
  const { wait, lead } = setUp();
  let isOpen = true;
  wait(set("b"), { isOpen: () => isOpen });
  const led = await lead(() => {
    isOpen = false;
  });
  expect(led?.draft.metadata.labels).toBeUndefined();
  expect(led?.others).toEqual([{ kind: "alone" }]);
});

test.each<{ what: string; change: Change }>([
  {
    what: "throws half-way",
    change: (draft) => {
      draft.metadata.labels = { half: "done" };
      throw new Error("no");
    },
  },
  {
    what: "never ends",
    change: async (draft) => {
      draft.metadata.labels = { half: "done" };
      await new Promise(() => undefined);
    },
  },
])("a change that $what is left to itself and leaves no trace", async ({ change }) => {
  const { wait, lead } = setUp();
  wait(change);
  wait(set("c"));
  const led = await lead(set("a"));
  expect(led?.draft.metadata.labels).toEqual({ a: "yes", c: "yes" });
  expect(led?.others.map(({ kind }) => kind)).toEqual(["alone", "written"]);
});

test("reports a change without effect as unchanged, although others wrote", async () => {
  const { wait, lead } = setUp();
  wait(() => undefined);
  const led = await lead(set("a"));
  expect(led?.others).toMatchObject([{ kind: "written", result: { kind: "unchanged" } }]);
});

test("leaves out slow changes, which come next", async () => {
  const { clock, wait, lead } = setUp();
  wait((draft) => {
    clock.ms = 100;
    return set("b")(draft);
  });
  wait(set("c"));
  const led = await lead(set("a"));
  expect(led?.draft.metadata.labels).toEqual({ a: "yes", b: "yes" });
  expect(led?.others.map(({ kind }) => kind)).toEqual(["written", "alone"]);
});

test("requires the latest version of all changes", () => {
  const { groups, wait } = setUp();
  wait(set("b"), { read: atLeast("9") });
  wait(set("c"), { read: atLeast("10") });
  expect(groups.take("hot", { uid: undefined, read: atLeast("8") })?.read).toEqual(atLeast("10"));
});

test("fails all changes if the call breaks off, and writes each alone after a rejection", async () => {
  for (const [broken, kind] of [
    [{ error: new Error("broken off") }, "failed"],
    [undefined, "alone"],
  ] as const) {
    const { groups, wait, outcomes } = setUp();
    wait(set("b"));
    const company = groups.take("hot", { uid: "u", read: MUST_READ });
    await company?.join(set("a"))(object());
    company?.dissolve(broken);
    expect((await outcomes[0])?.kind).toBe(kind);
  }
});

test("does not repeat a change whose write may have taken effect, also if it is left out later", async () => {
  const lost = new KonvergeError("kube_unreachable", "the connection broke");
  const unchanged = { kind: "unchanged", tries: 1, lost: 0, beforeVersion: "5" } as const;
  for (const end of ["dissolve", "settle"] as const) {
    const { groups, wait, outcomes } = setUp();
    let isOpen = true;
    wait(set("b"), { isOpen: () => isOpen });
    const company = groups.take("hot", { uid: "u", read: MUST_READ });
    await company?.join(set("a"))(object());
    isOpen = false;
    await company?.join(set("a"))(object());
    if (end === "dissolve") company?.dissolve({ error: lost });
    else company?.settle({ ...unchanged, object: object() });
    expect(await outcomes[0]).toMatchObject({
      kind: "failed",
      error: { code: "kube_unreachable" },
    });
  }
});

test("fails only the caller if the call breaks off before the changes were made", async () => {
  const { groups, wait, outcomes } = setUp();
  wait(set("b"));
  groups.take("hot", { uid: "u", read: MUST_READ })?.dissolve({ error: new Error("no token") });
  expect((await outcomes[0])?.kind).toBe("alone");
});

test("isolates a change that throws when repeated after a conflict", async () => {
  const { groups, wait, outcomes } = setUp();
  wait(set("b"));
  const company = groups.take("hot", { uid: "u", read: MUST_READ });
  let tries = 0;
  const change = company?.join(() => {
    if (++tries === 2) throw new Error("not any more");
  });
  await change?.(object());
  await expect(change?.(object())).rejects.toThrow("not any more");
  company?.dissolve({ error: new Error("not any more") });
  expect((await outcomes[0])?.kind).toBe("alone");
});
