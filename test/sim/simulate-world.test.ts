import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { defineController, type ControllerOptions, type ReconcileContext } from "@konverge/engine";
import { expect, test } from "vitest";
import {
  simulate,
  type Scenario,
  type SimulateOptions,
  type SimulationFailure,
} from "../../apps/cli/src/testing/index.ts";
import { App, type AppObject } from "./planted/kinds.ts";

type Reconcile = ControllerOptions<AppObject>["reconcile"];

const apply: Scenario["run"] = async (user) => {
  await user.apply(App, { metadata: { name: "one" }, spec: { note: "none" } });
  await user.settled();
};

/** Simulates one handler. */
async function play(
  reconcile: Reconcile,
  scenario: Partial<Scenario> = {},
  options: SimulateOptions = { seeds: 0 },
): Promise<SimulationFailure | undefined> {
  const controller = defineController({ name: "world", for: App, timeout: "10m", reconcile });
  const run = { run: apply, ...scenario };
  return (await simulate({ controllers: [controller] }, run, options)).failure;
}

const checksOf = (failure: SimulationFailure | undefined) =>
  failure?.violations.map(({ check, detail }) => `${check}: ${detail}`).join("\n") ?? "";

async function storedNote({ object, kube }: ReconcileContext<AppObject>, note: string) {
  if (object.spec.note !== "none") return;
  await kube.mutate(object, (draft) => {
    draft.spec.note = note;
  });
}

test.each([
  ["always", "broken: the invariant threw: no such child (after a change of apps"],
  ["finally", "broken: the invariant threw: no such child (at rest)"],
] as const)("reports an invariant of %s that throws, with the story", async (when, expected) => {
  const holds = () => {
    throw new Error("no such child");
  };
  const failure = await play(async () => undefined, { [when]: { broken: holds } });
  expect(checksOf(failure)).toContain(expected);
  expect(failure?.story).toContain("user      applies App one");
});

test.each([
  ["throws", () => Promise.reject(new Error("a mistake"))],
  [
    "throws before its promise",
    () => {
      throw new Error("a mistake");
    },
  ],
])("reports a reaction that %s", async (_how, change) => {
  const failure = await play(async () => undefined, { reactions: [{ type: App, change }] });
  expect(checksOf(failure)).toBe("reactions succeed: a mistake");
});

test("accepts a reaction that meets a deleted object", async () => {
  const failure = await play(async () => undefined, {
    reactions: [
      {
        type: App,
        change: async (_app, user) => {
          await user.kube.get({ type: App, name: "gone" });
        },
      },
    ],
  });
  expect(failure?.story).toBeUndefined();
});

const waits: Partial<Scenario> = {
  run: async (user) => {
    await apply(user);
    await user.sleep(1_000);
  },
};

test("reports a callback of a timer that throws", async () => {
  const failure = await play(async () => {
    setTimeout(() => {
      throw new Error("not caught");
    }, 5);
  }, waits);
  expect(checksOf(failure)).toBe("no uncaught errors: a callback threw: not caught");
});

test("reports a compare that throws", async () => {
  const failure = await play(async () => undefined, {
    compare: () => {
      throw new Error("not comparable");
    },
  });
  expect(checksOf(failure)).toBe("compare succeeds: not comparable");
});

test("passes frozen objects to handlers, invariants and reactions", async () => {
  const frozen: Record<string, boolean> = {};
  const look = (where: string, object: AppObject | undefined) => {
    if (object !== undefined) frozen[where] = Object.isFrozen(object.spec);
  };
  const failure = await play(
    async ({ object, kube }) => {
      look("object", object);
      look("listed", (await kube.list(App))[0]);
      look("read", await kube.get(object));
    },
    {
      always: { looks: (objects) => look("invariant", objects.list(App)[0]) },
      reactions: [{ type: App, change: async (app: AppObject) => look("reaction", app) }],
    },
  );
  expect(failure?.story).toBeUndefined();
  expect(frozen).toEqual({
    object: true,
    listed: true,
    read: true,
    invariant: true,
    reaction: true,
  });
});

test("delivers the events of a watch in the order of their versions", async () => {
  const versions: number[] = [];
  let previous = 0;
  const controller = () => {
    previous = 0;
    return defineController({
      name: "world",
      for: {
        type: App,
        predicate: (event) => {
          const version = Number(event.object.metadata.resourceVersion);
          if (version < previous) versions.push(version);
          previous = version;
          return true;
        },
      },
      reconcile: async () => undefined,
    });
  };
  await simulate(
    () => ({ controllers: [controller()] }),
    {
      async run(user) {
        for (let n = 1; n <= 8; n++) {
          await user.apply(App, { metadata: { name: "one" }, spec: { replicas: n } });
        }
        await user.settled();
      },
    },
    { seeds: 30, faults: ["timing"] },
  );
  expect(versions).toEqual([]);
});

test("keeps the order of timers with an equal delay and of immediates, and changes that of others", async () => {
  const orders: string[] = [];
  await play(
    async () => {
      const order: string[] = [];
      const set = (name: string, ms: number) => setTimeout(() => order.push(name), ms);
      set("a1", 20);
      set("a2", 20);
      set("a3", 20);
      // The import of this file has promises.
      globalThis.setImmediate(() => order.push("i1"));
      globalThis.setImmediate(() => order.push("i2"));
      await new Promise((resolve) => {
        setTimeout(resolve, 10);
      });
      // Due at the same time as the first ones.
      set("b", 10);
      await new Promise((resolve) => {
        setTimeout(resolve, 30);
      });
      orders.push(order.join(" "));
    },
    {},
    { seeds: 30, faults: ["timing"] },
  );
  const withoutB = new Set(orders.map((order) => order.replace(" b", "")));
  expect([...withoutB]).toEqual(["i1 i2 a1 a2 a3"]);
  expect(new Set(orders).size).toBeGreaterThan(1);
});

test("makes all sources of time and randomness virtual, and equal in each run", async () => {
  const seen: string[] = [];
  const failure = await play(async (context) => {
    await new Promise((resolve) => {
      setTimeout(resolve, 90_000);
    });
    const random = crypto.getRandomValues(new Uint8Array(4)).join();
    const values = [
      new Date().toISOString(),
      Date.now(),
      performance.now(),
      process.hrtime()[0],
      Number(process.hrtime.bigint() / 1_000_000_000n),
      new Date().constructor === Date,
      Math.random(),
      crypto.randomUUID(),
      random,
    ];
    if (seen.length < 2) seen.push(values.join(" "));
    await storedNote(context, values.join(" "));
  });
  expect(failure?.story).toBeUndefined();
  expect(seen[0]).toMatch(/^2026-01-01T00:01:30\.0\d\dZ 17672256900\d\d 900\d\d 90 90 true 0\./);
});

test("restores all globals if the simulation throws", async () => {
  const members = (): unknown[] =>
    [
      [globalThis, ["Date", "setTimeout", "clearTimeout", "setImmediate", "fetch"]] as const,
      [Date.prototype, ["constructor"]] as const,
      [performance, ["now"]] as const,
      [process, ["hrtime"]] as const,
      [Math, ["random"]] as const,
      [crypto, ["randomUUID", "getRandomValues"]] as const,
      [AbortSignal, ["timeout"]] as const,
    ].flatMap(([target, names]) => names.map((name): unknown => Reflect.get(target, name)));
  const before = members();
  const config = () => {
    throw new Error("no configuration");
  };
  await expect(simulate(config, { run: apply })).rejects.toThrow("no configuration");
  expect(members().map((member, index) => member === before[index])).toEqual(
    before.map(() => true),
  );
});

test("keeps simulations that run at the same time apart", async () => {
  const options = { seeds: 4, faults: ["crash", "timing"] } as const;
  const stories = async (from: number) =>
    await play(
      async (context) => {
        await new Promise((resolve) => {
          setTimeout(resolve, 1_000 * from);
        });
        await storedNote(context, `${Date.now()} ${crypto.randomUUID()} ${Math.random()}`);
      },
      { finally: { "ends here": () => "to compare stories" } },
      options,
    );
  const alone = [(await stories(1))?.story, (await stories(2))?.story];
  const together = await Promise.all([stories(1), stories(2)]);
  expect(together.map((failure) => failure?.story)).toEqual(alone);
});

test.each(["slow", "suspend"] as const)("perturbs an external call: %s", async (kind) => {
  const whens = new Set<string>();
  for (let seed = 1; seed < 80 && whens.size < 2; seed++) {
    let longest = 0;
    const failure = await play(
      async ({ external }) => {
        const before = Date.now();
        const at = await external("bill", () => Date.now());
        if (at === undefined) throw new Error("planned");
        longest = Math.max(longest, at - before, Date.now() - at);
      },
      {
        run: async (user) => {
          longest = 0;
          await apply(user);
        },
        finally: { "takes no time": () => (longest > 40 ? "it took long" : undefined) },
      },
      { seeds: 1, firstSeed: seed, faults: [kind] },
    );
    const when = /(before|after) (call 1|its effect)/.exec(failure?.story ?? "");
    if (when !== null) whens.add(when[1]!);
  }
  expect([...whens].toSorted()).toEqual(["after", "before"]);
});

test("releases the memory of a run that has ended", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const controllers: WeakRef<object>[] = [];
  const config = () => {
    const controller = defineController({ name: "world", for: App, reconcile: async () => {} });
    controllers.push(new WeakRef(controller));
    return { controllers: [controller] };
  };
  await simulate(config, { run: apply }, { seeds: 20 });
  await setImmediate();
  collect();
  const kept = controllers.filter((each) => each.deref() !== undefined);
  expect(controllers.length).toBeGreaterThan(20);
  expect(kept.length).toBeLessThan(3);
});
