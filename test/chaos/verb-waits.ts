import type { ApiObject, ResourceType } from "@konverge/core";
import {
  all,
  any,
  condition,
  field,
  gone,
  ready,
  StepFailedError,
  type ObjectRef,
  type WaitCondition,
  type WorkflowContext,
} from "@konverge/workflow";

/** Waits of random programs for objects that an external actor gives the expected state, or does not. */
export interface WaitOp {
  readonly kind: "wait";
  readonly name: string;
  readonly undo: boolean;
  readonly takesMs: number;
  readonly join: "one" | "all" | "any";
  readonly objects: readonly WaitedObject[];
  /** Reached if the actor never acts; otherwise long after the end of the test. */
  readonly timeoutMs: number;
}

export interface WaitedObject {
  readonly what: "ready" | "condition" | "field" | "gone";
  /** The delay between its creation and the actor's change, in ms; absent: never. */
  readonly afterMs?: number;
}

export interface WaitedWidget extends ApiObject {
  readonly spec?: WaitedObject;
  readonly status?: { readonly answer?: string };
}

export const WAITED_GROUP = "verb-waits.test.konverge.dev";
export const WIDGETS: ResourceType<WaitedWidget> = {
  group: WAITED_GROUP,
  version: "v1",
  kind: "Widget",
  resource: "widgets",
  scope: "Namespaced",
};
const NEVER_REACHED_MS = 3_600_000;
const TIMED_OUT = 100;

export function makeWaitOp(
  random: () => number,
  act: Pick<WaitOp, "name" | "undo" | "takesMs">,
): WaitOp {
  const below = (n: number) => Math.floor(random() * n);
  const whats = ["ready", "condition", "field", "gone"] as const;
  const makeObject = (isDone: boolean): WaitedObject => {
    const what = whats[below(whats.length)] ?? "ready";
    return isDone ? { what, afterMs: below(800) } : { what };
  };
  const join = (["one", "one", "all", "any"] as const)[below(4)] ?? "one";
  const isMet = below(4) > 0;
  const first = makeObject(isMet);
  const others = join === "one" ? [] : [makeObject(join === "all" || (isMet && below(2) === 0))];
  const objects = below(2) === 0 ? [first, ...others] : [...others, first];
  const timeoutMs = isMet ? NEVER_REACHED_MS : 200 + below(800);
  return { kind: "wait", join, objects, timeoutMs, ...act };
}

export function timesOut({ timeoutMs }: WaitOp): boolean {
  return timeoutMs !== NEVER_REACHED_MS;
}

/** Returns the number that the run adds for it. */
export function worthOf(op: WaitOp): number {
  return timesOut(op) ? TIMED_OUT : 1;
}

export const waitNameOf = ({ name }: WaitOp) => `${name} wait`;

/** Executes the wait of a program. `refs`: its objects, in order. */
export async function runWait(
  w: WorkflowContext,
  op: WaitOp,
  refs: readonly ObjectRef[],
): Promise<number> {
  const conditions = op.objects.flatMap(({ what }, index) => {
    const ref = refs[index];
    return ref === undefined ? [] : [conditionOf(what, ref)];
  });
  const [first] = conditions;
  const joined: WaitCondition | undefined =
    op.join === "one" ? first : op.join === "all" ? all(...conditions) : any(...conditions);
  if (joined === undefined) throw new Error(`"${op.name}" waits for nothing`);
  try {
    await w.waitFor(waitNameOf(op), joined, { timeout: op.timeoutMs });
    return 1;
  } catch (error) {
    if (error instanceof StepFailedError && error.failure.code === "wait_timeout") return TIMED_OUT;
    throw error;
  }
}

function conditionOf(what: WaitedObject["what"], ref: ObjectRef): WaitCondition {
  switch (what) {
    case "ready":
      return ready(ref);
    case "condition":
      return condition(ref, "Checked");
    case "field":
      return field<WaitedWidget>(ref, ({ status }) => status?.answer === "yes");
    case "gone":
      return gone(ref);
  }
}

/** Returns the status that meets the wait; undefined if the object must be deleted. */
export function statusOf({ spec, metadata }: WaitedWidget): object | undefined {
  const { generation: observedGeneration } = metadata;
  const isTrue = (type: string) => ({
    observedGeneration,
    conditions: [{ type, status: "True", observedGeneration }],
  });
  switch (spec?.what) {
    case "ready":
      return isTrue("Ready");
    case "condition":
      return isTrue("Checked");
    case "field":
      return { answer: "yes" };
    default:
      return undefined;
  }
}
