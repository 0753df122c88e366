import { defineController } from "@konverge/engine";
import { defineWorkflow, TerminalError, type AnyWorkflow } from "@konverge/workflow";
import type { WorkflowContext } from "@konverge/workflow";
import type { Scenario, SimulatedUser } from "../../../apps/cli/src/testing/index.ts";
import { App } from "./kinds.ts";
import type { Planted, PlantedBug } from "./planted-bug.ts";

interface Order {
  readonly order: string;
}

/** The world outside of the cluster: effects in order. */
interface Outside {
  readonly effects: string[];
  /** Notes an effect that systems with idempotency keys have once. */
  once(effect: string): void;
}

type Run = (w: WorkflowContext<Order>, input: Order, outside: Outside) => Promise<unknown>;

/** A configuration with one workflow, whose effects are noted. */
function ordering(run: Run, ...children: AnyWorkflow[]): () => Planted {
  return () => {
    const { outside, log } = openOutside();
    const order = defineWorkflow("order", { version: 1 }, (w, input: Order) =>
      run(w as WorkflowContext<Order>, input, log),
    );
    return { workflows: [order, ...children], resources: [App], outside };
  };
}

function openOutside(): { readonly outside: string[]; readonly log: Outside } {
  const outside: string[] = [];
  const once = (effect: string) => {
    if (!outside.includes(effect)) outside.push(effect);
  };
  return { outside, log: { effects: outside, once } };
}

const workflowOf = (planted: Planted | undefined) => {
  const [workflow] = planted?.workflows ?? [];
  if (workflow === undefined) throw new Error("no workflow");
  return workflow;
};

/** Starts one order. No effect outside of the cluster happens twice. */
const ordered =
  (more: Partial<Scenario> = {}, act: (user: SimulatedUser) => Promise<void> = async () => {}) =>
  (current: () => Planted | undefined): Scenario => ({
    async run(user) {
      await user.start(workflowOf(current()), { order: "4711" });
      await user.settled();
      await act(user);
    },
    always: { "each effect once": () => twice(current()) },
    finally: { "each effect once": () => twice(current()) },
    ...more,
  });

function twice({ outside = [] }: Partial<Planted> = {}): string | undefined {
  const effect = outside.find((one, index) => outside.indexOf(one) !== index);
  return effect === undefined ? undefined : `${effect} happened twice`;
}

/** What is reserved for orders that have failed is released. */
const released = (current: () => Planted | undefined): NonNullable<Scenario["finally"]> => ({
  "a failed order reserves nothing": (objects) => {
    const { outside = [] } = current() ?? {};
    const hasFailed = objects.runs({ name: "order" }).some(({ status }) => status === "failed");
    const isLeft = outside.includes("reserved") && !outside.includes("released");
    return hasFailed && isLeft ? "the reservation is left" : undefined;
  },
});

const WEB = { type: App, name: "web", namespace: "default" };

/** Bugs of workflows. */
export const WORKFLOW_BUGS: readonly PlantedBug[] = [
  {
    name: "effect outside of a step: each replay sends the mail again",
    check: "each effect once",
    isPlain: true,
    wrong: ordering(async (w, _input, outside) => {
      await w.step("reserve", () => outside.once("reserved"));
      outside.effects.push("mailed");
      await w.sleep("pause", "1m");
    }),
    right: ordering(async (w, _input, outside) => {
      await w.step("reserve", () => outside.once("reserved"));
      await w.step("mail", () => outside.once("mailed"));
      await w.sleep("pause", "1m");
    }),
    scenario: ordered(),
  },
  {
    name: "external call without a key: a repeated body charges again",
    check: "each effect once",
    wrong: ordering(async (w, { order }, outside) => {
      await w.step("charge", () => void outside.effects.push(`charged ${order}`));
      await w.step("ship", () => outside.once("shipped"));
    }),
    right: ordering(async (w, _input, outside) => {
      await w.step("charge", (step) => outside.once(`charged ${step.idempotencyKey}`));
      await w.step("ship", () => outside.once("shipped"));
    }),
    scenario: ordered(),
  },
  {
    name: "forgotten undo: a failed order keeps its reservation",
    check: "a failed order reserves nothing",
    isPlain: true,
    wrong: ordering(async (w, _input, outside) => {
      await w.step("reserve", () => outside.once("reserved"));
      await w.step("pay", refusePayment);
    }),
    right: ordering(async (w, _input, outside) => {
      await w.step("reserve", () => outside.once("reserved"), {
        undo: () => outside.once("released"),
      });
      await w.step("pay", refusePayment);
    }),
    scenario: (current) => ordered({ finally: released(current) })(current),
  },
  {
    name: "undo that needs the result: a step with an unknown outcome is not undone",
    check: "a failed order reserves nothing",
    wrong: ordering(async (w, _input, outside) => {
      await w.step("reserve", () => (outside.once("reserved"), "r-1"), {
        unsafe: true,
        undo: (id) => {
          if (id !== undefined) outside.once("released");
        },
      });
    }),
    right: ordering(async (w, _input, outside) => {
      await w.step("reserve", () => (outside.once("reserved"), "r-1"), {
        unsafe: true,
        undo: () => outside.once("released"),
      });
    }),
    // A crash may fail an unsafe step.
    scenario: (current) =>
      ordered({ finally: released(current), compareRun: () => undefined })(current),
  },
  {
    name: "random name of a step: it runs again after each wait",
    check: "each effect once",
    isPlain: true,
    wrong: ordering(async (w, { order }, outside) => {
      await w.step(`charge ${crypto.randomUUID()}`, () => {
        outside.effects.push(`charged ${order}`);
      });
      await w.sleep("pause", "1m");
    }),
    right: ordering(async (w, { order }, outside) => {
      await w.step(`charge ${order}`, () => outside.once(`charged ${order}`));
      await w.sleep("pause", "1m");
    }),
    scenario: ordered(),
  },
  {
    name: "memory of the process: a replay leaves out a step",
    check: "runs are deterministic",
    isPlain: true,
    wrong: () => {
      const reminded = new Set<string>();
      return ordering(async (w, _input, outside) => {
        if (!reminded.has(w.runId)) {
          reminded.add(w.runId);
          await w.step("remind", () => outside.once("reminded"));
        }
        await w.sleep("pause", "1m");
      })();
    },
    right: ordering(async (w, _input, outside) => {
      await w.step("remind", () => outside.once("reminded"));
      await w.sleep("pause", "1m");
    }),
    scenario: ordered(),
  },
  {
    name: "id per attempt: a repeated reconcile starts a second run",
    check: "the result without faults",
    wrong: () => starting(() => ({ id: crypto.randomUUID(), key: crypto.randomUUID() })),
    right: () => starting(() => ({})),
    scenario: () => ({
      async run(user) {
        await user.apply(App, { metadata: { name: "web" }, spec: {} });
        await user.settled();
      },
    }),
  },
  {
    name: "value from before a wait: a change made meanwhile is lost",
    check: "the change of the user counts",
    isPlain: true,
    wrong: ordering(async (w) => {
      const before = await w.step("read", async (k) => (await k.get(WEB)).spec.replicas);
      await w.signal("approve");
      await w.step("count", async (k) => {
        await k.mutate(WEB, (draft) => {
          draft.spec.replicas = before + 1;
        });
      });
    }),
    right: ordering(async (w) => {
      await w.signal("approve");
      await w.step("count", async (k) => {
        await k.mutate(WEB, (draft) => {
          draft.spec.replicas += 1;
        });
      });
    }),
    scenario: (current) => ({
      async run(user) {
        await user.apply(App, { metadata: { name: "web" }, spec: { replicas: 1 } });
        const run = await user.start(workflowOf(current()), { order: "4711" });
        await user.settled();
        await user.apply(App, { metadata: { name: "web" }, spec: { replicas: 5 } });
        await user.signal(run, "approve");
        await user.settled();
      },
      finally: {
        "the change of the user counts": (objects) => {
          const replicas = objects.get(App, "web")?.spec.replicas;
          return replicas === 6 ? undefined : `replicas is ${replicas}`;
        },
      },
    }),
  },
  {
    name: "fixed id of a started run: the second order gets that of the first",
    check: "all orders are done",
    isPlain: true,
    wrong: invoicing({ id: "invoice" }),
    right: invoicing({}),
    scenario: (current) => ({
      async run(user) {
        await user.start(workflowOf(current()), { order: "1" });
        await user.start(workflowOf(current()), { order: "2" });
        await user.settled();
      },
      finally: {
        "all orders are done": (objects) => {
          const open = objects.runs({ name: "order" }).find(({ status }) => status !== "done");
          return open === undefined ? undefined : `${open.id} is ${open.status}`;
        },
      },
    }),
  },
  {
    name: "swallowed cancellation: a cancelled order is shipped",
    check: "a cancelled order is not shipped",
    isPlain: true,
    wrong: ordering(async (w, _input, outside) => {
      await w.signal("approve").catch(() => undefined);
      await w.step("ship", () => outside.once("shipped"));
    }),
    right: ordering(async (w, _input, outside) => {
      await w.signal("approve");
      await w.step("ship", () => outside.once("shipped"));
    }),
    scenario: (current) => ({
      ...ordered({}, (user) => user.cancel({ workflow: "order", id: "run-1" }))(current),
      finally: {
        "a cancelled order is not shipped": () =>
          current()?.outside?.includes("shipped") === true ? "it was shipped" : undefined,
      },
    }),
  },
];

function refusePayment(): never {
  throw new TerminalError("the card is refused");
}

/** A controller that starts an order for each App. */
function starting(idOf: () => { readonly id?: string; readonly key?: string }): Planted {
  const { outside, log } = openOutside();
  const order = defineWorkflow("order", { version: 1 }, async (w, input: Order) => {
    await w.step("ship", () => log.once(`shipped ${input.order}`));
  });
  const controller = defineController({
    name: "planted",
    for: App,
    async reconcile({ object, kube, startRun }) {
      if (object.status?.phase === "Ordered") return;
      await startRun(order, { order: object.metadata.name }, idOf());
      await kube.mutateStatus(object, (draft) => {
        draft.status.phase = "Ordered";
      });
    },
  });
  return { controllers: [controller], workflows: [order], outside };
}

/** Each order starts the run of its invoice. */
function invoicing(options: { readonly id?: string }): () => Planted {
  const invoice = defineWorkflow("invoice", { version: 1 }, async (w, input: Order) => {
    await w.step("print", () => input.order);
  });
  return ordering(async (w, input) => {
    await w.start("invoice", invoice, input, options);
  }, invoice);
}
