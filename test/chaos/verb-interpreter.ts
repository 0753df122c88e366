import { TerminalError } from "@konverge/core";
import {
  defineWorkflow,
  type ObjectRef,
  type StepContext,
  type Workflow,
  type WorkflowContext,
} from "@konverge/workflow";
import {
  counterOf,
  FAILED_CHILD,
  MAKER,
  makerOf,
  NAMESPACE,
  TEST,
  type Counter,
  type VerbOp,
  type VerbProgram,
} from "./verb-programs.ts";
import { runWait, WAITED_GROUP, type WaitedObject, type WaitOp } from "./verb-waits.ts";

export interface InterpreterOptions {
  readonly version?: number;
  /** Called for each started body. */
  readonly onBody?: () => Promise<unknown>;
  readonly isHealed?: () => Promise<boolean>;
}

/** The workflow that executes a program. */
export function makeVerbInterpreter(
  test: string,
  {
    version = 1,
    onBody = async () => undefined,
    isHealed = async () => true,
  }: InterpreterOptions = {},
): Workflow<VerbProgram, number> {
  const accepts = Array.from({ length: version - 1 }, (_, before) => before + 1);
  const interpreter: Workflow<VerbProgram, number> = defineWorkflow(
    "verbs",
    { version, accepts },
    async (w, program: VerbProgram) => {
      const sum = await runOps(w, program.ops);
      if (program.fails) throw new TerminalError(`as planned: ${sum}`);
      return sum;
    },
  );
  const runOps = async (w: WorkflowContext, ops: readonly VerbOp[]): Promise<number> => {
    let sum = 0;
    for (const op of ops) sum += await runOp(w, op);
    return sum;
  };
  const runOp = async (w: WorkflowContext, op: VerbOp): Promise<number> => {
    switch (op.kind) {
      case "sleep":
        await w.sleep(op.name, op.ms);
        return 0;
      case "signal":
        return Number(await w.signal("signal"));
      case "child":
        return await w.child(op.name, interpreter, op.program).catch(() => FAILED_CHILD);
      case "all": {
        const sums = await Promise.all(op.branches.map((branch) => runOps(w, branch)));
        return sums.reduce((all, one) => all + one, 0);
      }
      case "count":
        await runCount(w, op);
        return 1;
      case "apply":
        await runApply(w, op);
        return 1;
      case "create":
        await runCreate(w, op);
        return 1;
      case "scale":
        await runScale(w, op);
        return 1;
      case "wait":
        return await runWait(w, op, await makeWaited(w, op));
    }
  };
  const labels = (w: WorkflowContext, name: string) => ({
    [TEST]: test,
    [MAKER]: makerOf(w.runId, name),
  });
  const runCount = async (
    w: WorkflowContext,
    {
      name,
      counter,
      by,
      undo,
      takesMs,
      breaks = false,
      spread = false,
    }: Extract<VerbOp, { kind: "count" }>,
  ) => {
    const target = counterOf(test, counter);
    const add = (value: number) => (draft: Counter) => {
      const { sum = "0", count = "0" } = draft.data ?? {};
      draft.data = { sum: String(Number(sum) + value), count: String(Number(count) + 1) };
    };
    const whole = by.reduce((sum, one) => sum + one, 0);
    await w.step(
      name,
      async (k) => {
        await onBody();
        await pause(takesMs);
        for (const value of by) await k.mutate<Counter>(target, add(value));
        if (breaks && !(await isHealed())) throw new TerminalError("broken, as planned");
        await pause(takesMs);
      },
      {
        spread,
        ...(undo
          ? { undo: async (_, k) => void (await k.mutate<Counter>(target, add(-whole))) }
          : {}),
      },
    );
  };
  const runApply = async (
    w: WorkflowContext,
    { name, later, undo, takesMs }: Extract<VerbOp, { kind: "apply" }>,
  ) => {
    const object = (content: string) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: {
        namespace: NAMESPACE,
        name: `${test}-${makerOf(w.runId, name)}`,
        labels: labels(w, name),
      },
      data: { content },
    });
    const ref = await w.step(
      name,
      async (k) => {
        await onBody();
        await pause(takesMs);
        const made = await k.apply(object("made"));
        await pause(takesMs);
        return made;
      },
      undo ? { undo: (made, k) => k.delete(made ?? object("made")) } : {},
    );
    if (later === "change") {
      await w.step(`${name} change`, async (k) => {
        await onBody();
        return await k.apply(object("changed"), { uid: ref.uid });
      });
    }
    if (later === "delete") {
      await w.step(`${name} delete`, async (k) => {
        await onBody();
        await k.delete(ref);
      });
    }
  };
  const runCreate = async (
    w: WorkflowContext,
    { name, undo, takesMs }: Extract<VerbOp, { kind: "create" }>,
  ) => {
    await w.step(
      name,
      async (k) => {
        await onBody();
        await pause(takesMs);
        const made = await k.create({
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: {
            namespace: NAMESPACE,
            generateName: `${test}-`,
            labels: labels(w, name),
          },
          data: { content: "made" },
        });
        await pause(takesMs);
        return made;
      },
      undo ? { undo: (made, k) => deleteMade(made, k) } : {},
    );
  };
  const runScale = async (
    w: WorkflowContext,
    { name, replicas, undo, takesMs }: Extract<VerbOp, { kind: "scale" }>,
  ) => {
    const matchLabels = labels(w, name);
    const ref = await w.step(
      name,
      async (k) => {
        await onBody();
        return await k.create({
          apiVersion: "apps/v1",
          kind: "Deployment",
          metadata: { namespace: NAMESPACE, generateName: `${test}-`, labels: matchLabels },
          spec: {
            selector: { matchLabels },
            template: {
              metadata: { labels: matchLabels },
              spec: { containers: [{ name: "main", image: "main" }] },
            },
          },
        });
      },
      undo ? { undo: (made, k) => deleteMade(made, k) } : {},
    );
    await w.step(`${name} scale`, async (k) => {
      await onBody();
      await pause(takesMs);
      await k.scale(ref, replicas);
    });
  };
  const makeWaited = async (w: WorkflowContext, { name, objects, undo, takesMs }: WaitOp) => {
    const waited = (spec: WaitedObject, index: number) => ({
      apiVersion: `${WAITED_GROUP}/v1`,
      kind: "Widget",
      metadata: {
        namespace: NAMESPACE,
        name: `${test}-${makerOf(w.runId, name)}-${index}`,
        labels: labels(w, `${name}.${index}`),
      },
      spec,
    });
    return await w.step(
      name,
      async (k) => {
        await onBody();
        await pause(takesMs);
        const made: ObjectRef[] = [];
        for (const [index, spec] of objects.entries())
          made.push(await k.apply(waited(spec, index)));
        await pause(takesMs);
        return made;
      },
      undo
        ? {
            undo: async (made, k) =>
              void (await Promise.all((made ?? []).map((ref) => k.delete(ref)))),
          }
        : {},
    );
  };
  return interpreter;
}

async function deleteMade(made: ObjectRef | undefined, k: StepContext): Promise<void> {
  if (made !== undefined) await k.delete(made);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
