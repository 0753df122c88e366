import { CoreV1Api } from "@kubernetes/client-node";
import { ensureError, TerminalError } from "@konverge/core";
import type { AttemptKube, ReconcileContext, ReconcileResult } from "@konverge/engine";
import { isConflict } from "@konverge/kube";
import { describe, expect, test } from "vitest";
import { eager, namespace, useEngines } from "./engine-harness.ts";
import { testServers, type Widget } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

class Mine {
  readonly kind = "requeueAfter";
  readonly afterMs = "soon";
}

const circular: Record<string, unknown> = { code: 7 };
circular["self"] = circular;
const cyclic = new Error("first");
cyclic.cause = new Error("second", { cause: cyclic });
const hostile = new Error("seen never");
Object.defineProperty(hostile, "message", {
  get() {
    throw new Error("no message for you");
  },
});
const numbered = Object.assign(new Error("x"), { message: 5 as unknown as string });
const unreadable = new Proxy(
  {},
  {
    get() {
      throw new Error("get");
    },
    has() {
      throw new Error("has");
    },
    getPrototypeOf() {
      throw new Error("getPrototypeOf");
    },
    ownKeys() {
      throw new Error("ownKeys");
    },
  },
);

/** Thrown values with the code and a part of the message in the record. */
const thrown: readonly [title: string, value: unknown, code: string, message: string][] = [
  ["undefined", undefined, "invalid_throw", "threw undefined; throw new Error("],
  ["null", null, "invalid_throw", "threw null"],
  ["a text", "boom", "invalid_throw", 'the string "boom"'],
  ["a number", 42, "invalid_throw", "the number 42"],
  ["a bigint", 42n, "invalid_throw", "the bigint 42"],
  ["a symbol", Symbol("why"), "invalid_throw", "Symbol(why)"],
  ["a function", () => undefined, "invalid_throw", "a function"],
  ["a circular object", circular, "invalid_throw", "an object with the members code, self"],
  [
    "an object that says something",
    { message: "boom" },
    "invalid_throw",
    'with the message "boom"',
  ],
  ["an object without a prototype", Object.create(null), "invalid_throw", "an object"],
  ["a Proxy that cannot be read", unreadable, "invalid_throw", "throws when read"],
  ["an Error whose getters throw", hostile, "invalid_throw", "throws when read"],
  ["an Error whose message is a number", numbered, "invalid_throw", "not a string"],
  ["a frozen Error", Object.freeze(new Error("frozen")), "Error", "frozen"],
  ["an Error that causes itself", cyclic, "Error", "first"],
  ["a message of 10 MB", new Error("x".repeat(10_000_000)), "Error", "xxx"],
  ["a text of 10 MB", "y".repeat(10_000_000), "invalid_throw", "yyy"],
  ["an AggregateError of nothing", new AggregateError([], "none"), "AggregateError", "none"],
  [
    "an AggregateError of failures",
    new AggregateError([new Error("a"), 5], "two"),
    "AggregateError",
    "two: a; the number 5",
  ],
];

/** Returned values with the message in the record. */
const returned: readonly [title: string, value: unknown, message: string][] = [
  ["a number", 5, "a number"],
  ["a text", "30s", "a string"],
  ["true", true, "a boolean"],
  ["a list", [], "a list"],
  ["a function", () => undefined, "a function"],
  ["an empty object", {}, "an object without members"],
  ["requeueAfter by another shape", { requeueAfter: 30 }, "the members requeueAfter"],
  ["requeueAfter NaN", { kind: "requeueAfter", afterMs: NaN }, "NaN ms"],
  ["requeueAfter of the past", { kind: "requeueAfter", afterMs: -1 }, "-1 ms"],
  ["requeueAfter 1e20", { kind: "requeueAfter", afterMs: 1e20 }, "366 days"],
  ["requeueAfter Infinity", { kind: "requeueAfter", afterMs: Infinity }, "Infinity ms"],
  ["an instance of a class", new Mine(), "soon ms"],
  ["an unknown kind", { kind: "Requeue" }, "the members kind"],
  ["a Proxy that cannot be read", new Proxy({}, { has: () => boom() }), "read"],
];

function boom(): never {
  throw new Error("unreadable");
}

describe.each(testServers())("bad handlers on $name", (target) => {
  const harness = useEngines(target, "bad.test.konverge.dev");

  test("records any thrown value clearly and retries until success", async () => {
    const runs = new Map<string, number>();
    const { queue, key, records } = await harness.start({
      backoff: eager,
      reconcile: async ({ object: { metadata } }) => {
        const run = (runs.get(metadata.name) ?? 0) + 1;
        runs.set(metadata.name, run);
        // oxlint-disable-next-line typescript/only-throw-error -- the subject of this test
        if (run === 1) throw thrown[Number(metadata.name.slice(1))]?.[1];
      },
    });
    await Promise.all(thrown.map((_, index) => harness.make(`t${index}`)));
    for (const [index, [title, , code, message]] of thrown.entries()) {
      const name = `t${index}`;
      await until(`after ${title} it succeeds`, async () => {
        return (await queue.getKey(key(name)))?.lastOutcome === "done";
      });
      const failed = await until(`${title} is recorded`, async () => {
        return (await records(name)).find(({ outcome }) => outcome === "retry");
      });
      expect(failed.parsed.error, title).toMatchObject({
        code,
        message: expect.stringContaining(message),
      });
      expect(failed.parsed.error?.message.length, title).toBeLessThan(600);
      expect(failed.error?.message.length, title).toBeLessThanOrEqual(1_100);
    }
  });

  test("records an invalid return value with a fix and retries", async () => {
    const runs = new Map<string, number>();
    const { queue, key, records } = await harness.start({
      backoff: eager,
      reconcile: async ({ object: { metadata } }) => {
        const run = (runs.get(metadata.name) ?? 0) + 1;
        runs.set(metadata.name, run);
        if (run > 1) return undefined;
        return returned[Number(metadata.name.slice(1))]?.[1] as ReconcileResult;
      },
    });
    await Promise.all(returned.map((_, index) => harness.make(`r${index}`)));
    for (const [index, [title, , message]] of returned.entries()) {
      const name = `r${index}`;
      await until(`after ${title} it succeeds`, async () => {
        return (await queue.getKey(key(name)))?.lastOutcome === "done";
      });
      const failed = await until(`${title} is recorded`, async () => {
        return (await records(name)).find(({ outcome }) => outcome === "retry");
      });
      expect(failed.parsed.error, title).toMatchObject({ code: "invalid_result" });
      expect(failed.parsed.error?.message, title).toContain(message);
      expect(failed.parsed.error?.message, title).toContain("awaitChange()");
    }
  });

  test("suggests a fix for an invalid duration", async () => {
    const { records } = await harness.start({
      backoff: eager,
      reconcile: async ({ requeueAfter, attempt }) =>
        attempt > 1 ? undefined : requeueAfter("soon" as "1s"),
    });
    await harness.make("d");
    const failed = await until("it is recorded", async () =>
      (await records("d")).find(({ outcome }) => outcome === "retry"),
    );
    expect(failed.parsed.error?.message).toContain('requeueAfter "soon" is not a duration');
  });

  test("classifies errors through causes, and an AggregateError by its most severe part", async () => {
    const lost = async ({ kube, object }: ReconcileContext<Widget>) => {
      await harness.client.mutate(harness.Widgets, nameOf(object), (draft) => {
        draft.spec = { ...draft.spec, foreign: Math.random() };
      });
      await kube.apply(harness.Widgets, {
        apiVersion: object.apiVersion,
        kind: object.kind,
        metadata: {
          ...nameOf(object),
          resourceVersion: object.metadata.resourceVersion ?? "",
        },
        spec: { ours: true },
      });
    };
    const wrap = (run: (context: ReconcileContext<Widget>) => Promise<void>, gather = false) =>
      async function failing(context: ReconcileContext<Widget>) {
        const error = await run(context).then(() => undefined, ensureError);
        throw gather
          ? new AggregateError([error, error], "both lost")
          : new Error("could not save", { cause: new Error("inner", { cause: error }) });
      };
    const never = async () => {
      throw new TerminalError("never");
    };
    const cases: Record<string, (context: ReconcileContext<Widget>) => Promise<void>> = {
      conflict: wrap(lost),
      "conflict-aggregate": wrap(lost, true),
      terminal: wrap(never),
      "terminal-aggregate": async () => {
        throw new AggregateError([new Error("x"), new TerminalError("never")], "several");
      },
      "retry-aggregate": async (context) => {
        const error = await lost(context).then(() => undefined, ensureError);
        throw new AggregateError([error, new Error("x")], "several");
      },
    };
    const { records } = await harness.start({
      conflictRetry: "job",
      backoff: eager,
      reconcile: async (context) => {
        if (context.attempt === 1) await cases[context.object.metadata.name]?.(context);
      },
    });
    await Promise.all(Object.keys(cases).map((name) => harness.make(name)));
    for (const name of Object.keys(cases)) {
      const first = await until(`${name} is recorded`, async () => (await records(name)).at(-1));
      expect(first.outcome, name).toBe(name.split("-")[0]);
    }
  });

  test("dead-letters a key after maxFailures; a new generation releases it", async () => {
    let heal = false;
    const { queue, key, records } = await harness.start({
      maxFailures: 3,
      backoff: eager,
      reconcile: async () => {
        if (!heal) throw new Error("broken");
      },
    });
    await harness.make("m");
    await until("it is dead", async () => (await queue.getKey(key("m")))?.phase === "deadLettered");
    expect((await records("m")).map(({ outcome }) => outcome)).toEqual(["retry", "retry", "retry"]);
    heal = true;
    await harness.client.mutate(harness.Widgets, { namespace, name: "m" }, (draft) => {
      draft.spec = { size: 2 };
    });
    await until("it succeeds", async () => {
      return (await queue.getKey(key("m")))?.lastOutcome === "done";
    });
    expect(await queue.getKey(key("m"))).toMatchObject({ phase: "idle", failures: 0 });
  });

  test("a request by annotation releases a dead-lettered key, as any user request", async () => {
    const { queue, key, records } = await harness.start({
      maxFailures: 1,
      reconcile: async () => {
        throw new Error("broken");
      },
    });
    await harness.make("n");
    await until("it is dead", async () => (await queue.getKey(key("n")))?.phase === "deadLettered");
    await harness.client.mutate(harness.Widgets, { namespace, name: "n" }, (draft) => {
      draft.metadata.annotations = { "konverge.dev/requested-at": "now" };
    });
    const [latest] = await until("it ran again", async () => {
      const all = await records("n");
      return all.length === 2 && all;
    });
    // After a resync, if the first list was reported late.
    const triggers = latest?.parsed["triggers"] as readonly unknown[];
    expect(triggers.at(-1)).toMatchObject({ kind: "watch", by: "annotation" });
  });

  test.each(["guarded", "fields"] as const)(
    "reports a swallowed conflict (%s)",
    async (strategy) => {
      const { records } = await harness.start({
        conflictRetry: "job",
        reconcile: async ({ object, kube }) => {
          await kube
            .mutate(
              object,
              async (draft) => {
                await harness.client.mutate(harness.Widgets, nameOf(object), (other) => {
                  other.spec = { ...other.spec, foreign: Math.random() };
                });
                draft.spec = { ...draft.spec, ours: true };
              },
              { strategy },
            )
            .catch((error: unknown) => {
              if (!isConflict(error)) throw error;
            });
        },
      });
      await harness.make("s");
      const first = await until("it is recorded", async () => (await records("s")).at(-1));
      expect(first).toMatchObject({
        outcome: "done",
        parsed: { conflicts: [{ name: "s" }], hints: [{ code: "swallowed_conflict" }] },
      });
    },
  );

  test("ends a handler that never settles after timeout and grace, and rejects all its later calls", async () => {
    let leaked: AttemptKube | undefined;
    let object: Widget | undefined;
    const { queue, key, records } = await harness.start({
      timeout: "50ms",
      backoff: eager,
      reconcile: async (context) => {
        if (context.attempt > 1) return;
        leaked = context.kube;
        object = context.object;
        await new Promise(() => undefined);
      },
    });
    await harness.make("n");
    await until("it succeeds in the end", async () => {
      return (await queue.getKey(key("n")))?.lastOutcome === "done";
    });
    expect((await records("n")).at(-1)?.parsed).toMatchObject({
      outcome: "retry",
      error: { code: "timed_out", message: expect.stringContaining("increase timeout") },
    });
    const kube = leaked;
    const widget = object;
    if (kube === undefined || widget === undefined) throw new Error("it never ran");
    const type = harness.Widgets;
    const calls: Record<keyof AttemptKube, () => Promise<unknown>> = {
      get: () => kube.get(type, "n"),
      find: () => kube.find(type, "n"),
      list: () => kube.list(type),
      create: () => kube.create(type, { name: "late" }),
      delete: () => kube.delete(widget),
      apply: () => kube.apply(type, widget),
      patch: () => kube.patch(widget, { spec: { late: true } }, { type: "merge" }),
      replace: () => kube.replace(widget),
      mutate: () => kube.mutate(widget, () => undefined),
      mutateStatus: () => kube.mutateStatus(widget, () => undefined),
      reconcileChildren: () => kube.reconcileChildren(widget, []),
      api: () => kube.api(CoreV1Api).listNamespace(),
      pages: () => kube.pages(type)[Symbol.asyncIterator]().next(),
      createOrUpdate: () => kube.createOrUpdate(type, "late", () => undefined),
      scale: () => kube.scale(widget, 1),
      readScale: () => kube.readScale(widget),
      deleteCollection: () => kube.deleteCollection(type, { all: true }),
      evict: () => kube.evict(widget),
      logs: () => kube.logs(widget),
      event: () => kube.event(widget, { type: "Normal", reason: "Late", message: "late" }),
      extract: () => kube.extract(widget),
      raw: () => kube.raw({ method: "GET", path: "/version" }),
      on: () => kube.on("west").get(type, "n"),
    };
    expect(Object.keys(kube).toSorted()).toEqual(Object.keys(calls).toSorted());
    for (const [method, run] of Object.entries(calls)) {
      await expect(run(), method).rejects.toMatchObject({ code: "attempt_ended" });
    }
  });

  test("waits for calls without await, warns about them, and fails the handler if they fail", async () => {
    const { lines, records } = await harness.start({
      backoff: eager,
      reconcile: async ({ object, kube, attempt }) => {
        if (attempt > 1) return;
        void kube.mutate(object, (draft) => {
          draft.spec = { late: true };
        });
        if (object.metadata.name === "fails") {
          kube.get(harness.Widgets, "nowhere").catch(() => undefined);
        }
      },
    });
    await Promise.all([harness.make("lands"), harness.make("fails")]);
    const failed = await until("the failure is recorded", async () =>
      (await records("fails")).at(-1),
    );
    expect(failed).toMatchObject({ outcome: "retry", parsed: { error: { code: "kube_api" } } });
    const landed = await until("the write is recorded", async () =>
      (await records("lands")).at(-1),
    );
    expect(landed).toMatchObject({ outcome: "done", parsed: { writes: [{ verb: "patch" }] } });
    expect(lines.some(({ message }) => message.includes("pending API calls"))).toBe(true);
  });

  test("keeps watching if a predicate or map function throws", async () => {
    const seen: string[] = [];
    const { lines } = await harness.start({
      predicate: () => boom(),
      watches: [{ type: harness.Widgets, map: () => boom() }],
      reconcile: async ({ object }) => {
        seen.push(`${object.metadata.name}:${String(object.spec?.["size"])}`);
      },
    });
    await harness.make("w");
    await until("the new object is reconciled", () => seen.includes("w:1"));
    await harness.client.mutate(harness.Widgets, { namespace, name: "w" }, (draft) => {
      draft.spec = { size: 2 };
    });
    await until("the change is reconciled", () => seen.includes("w:2"));
    const messages = lines.filter(({ level }) => level === "error").map(({ message }) => message);
    expect(messages.some((message) => message.includes("predicate threw"))).toBe(true);
    expect(messages.some((message) => message.includes("map function threw"))).toBe(true);
  });
});

function nameOf({ metadata: { name } }: Widget) {
  return { namespace, name };
}
