import { type ApiObject, type JsonValue, type ResourceType } from "@konverge/core";
import type { KubeClient, PlanGap } from "@konverge/kube";
import { expect } from "vitest";
import { AttemptPlan } from "../../../libs/engine/src/access/attempt-plan.ts";
import type { Widget } from "../kube/kube-servers.ts";
import { runProgram, shapeOf, type Step } from "./plan-programs.ts";
import { startWorld, type WorldOptions } from "./plan-world.ts";

export interface Program extends WorldOptions {
  /** Run before, so that the objects have managers and states. */
  readonly history: readonly Step[];
  readonly steps: readonly Step[];
}

interface Checked {
  readonly planned: JsonValue;
  readonly live: JsonValue;
  readonly gaps: readonly PlanGap[];
}

/** Plans a program, then runs it, and returns what both have seen and left. */
export async function checkProgram(
  client: KubeClient,
  Widgets: ResourceType<Widget>,
  { history, steps, ...options }: Program,
): Promise<Checked> {
  const world = await startWorld(client, Widgets, options);
  try {
    await world.run(async (context) => void (await runProgram(context, history)));
    const before = await world.objects();
    const plan = new AttemptPlan();
    let seen: JsonValue[] = [];
    const planned = await world.run(async (context) => {
      seen = await runProgram(context, steps);
    }, plan);
    expect(await world.objects(), "the plan has written").toEqual(before);
    const { objects: overlay } = plan.in("default");
    const written = new Map(overlay.written.map((object) => [idOf(object.place), object.view]));
    const left = [
      ...before.filter(
        (object) => !written.has(idOf({ ...object.metadata, resource: resourceOf(object) })),
      ),
      ...[...written.values()].filter((view) => view !== undefined),
    ];
    const plannedSeen = seen;
    const live = await world.run(async (context) => {
      seen = await runProgram(context, steps);
    });
    return {
      planned: { outcome: planned.outcome.kind, seen: plannedSeen, left: shapeOf(left) },
      live: { outcome: live.outcome.kind, seen, left: shapeOf(await world.objects()) },
      gaps: overlay.gaps,
    };
  } finally {
    await world.remove();
  }
}

function idOf({ resource, name }: { readonly resource: string; readonly name?: string }): string {
  return `${resource}/${name ?? ""}`;
}

function resourceOf({ kind }: ApiObject): string {
  return `${kind.toLowerCase()}s`;
}
