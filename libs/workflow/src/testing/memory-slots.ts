import { defined } from "@konverge/core";
import type { RunRef } from "../define/run-ref.ts";
import { compareIds } from "../store/list-runs.ts";
import type { Held, RunSlot } from "../store/run-journal-store.ts";
import type { RunView, SlotWait } from "../store/run-record.ts";
import { MOST_ANCESTORS } from "../store/scripts/run-slots.ts";
import { hasEnded, isPaused, type MemoryRuns, type StoredRun } from "./memory-runs.ts";

/** Takes a slot for a run, by the rules of the script. @throws FencedError */
export function enterSlot(
  runs: MemoryRuns,
  held: Held,
  { slots, group }: RunSlot,
): "entered" | "waiting" | "cancelled" {
  const run = runs.ownActive(held);
  const { slot, view } = run;
  const { workflow } = view;
  if (hasSlot(run)) {
    if (view.status === "paused") return "waiting";
    if (view.status === "queued") {
      run.view = { ...view, status: "running" };
      run.isExecuted = true;
    }
    return "entered";
  }
  const holder = findHolder(runs, run, group);
  if (holder !== undefined) {
    run.slot = `^${holder}`;
    return "entered";
  }
  if (!runs.slotCounts.has(workflow)) runs.slotCounts.set(workflow, slots);
  const free = freeSlots(runs, workflow, group);
  const hasBegun = run.steps.size > 0 || run.progress.size > 0;
  const isCancelled = view.cancel !== undefined && !hasBegun;
  const isWaiting = waitingRuns(runs, workflow, group).length > 0;
  const isFirst = free > 0 && !isWaiting && view.status === "running" && !isCancelled;
  const isEnding = hasBegun && view.cancel !== undefined;
  if ((hasBegun && slot === undefined) || isEnding || isFirst) {
    run.slot = `+${group}`;
    return "entered";
  }
  if (isCancelled) return "cancelled";
  const {
    blockedReason: _blockedReason,
    blockedAtMs: _blockedAtMs,
    blockedError: _blockedError,
    waitingUntilMs: _waitingUntilMs,
    waits: _waits,
    ...left
  } = view;
  const { startedAtMs: _startedAtMs, ...queued } = left;
  run.view = hasBegun ? left : queued;
  if (isPaused(run)) {
    run.view = { ...run.view, status: "paused" };
    run.pausedFrom = "queued";
    run.slot = "";
  } else {
    run.view = { ...run.view, status: "queued" };
    run.slot = `?${group}`;
  }
  run.isExecuted = false;
  run.died = false;
  run.waited = [];
  return "waiting";
}

/** Gives up the slot or the place of a run. Returns the runs that get the slot. */
export function freeSlot(runs: MemoryRuns, run: StoredRun): readonly RunRef[] {
  const { slot = "", view } = run;
  if (slot === "") return [];
  run.slot = "";
  if (!slot.startsWith("+")) return [];
  inheritSlot(runs, view, slot);
  return passSlots(runs, view.workflow, slot.slice(1));
}

/** Runs that ran in the slot of an ended run take slots, even if none is free. */
function inheritSlot(runs: MemoryRuns, { workflow, id }: RunRef, slot: string): void {
  const below = runs.of(workflow).filter((run) => run.slot === `^${id}`);
  for (const run of below) {
    const ancestors = ancestorsOf(runs, run);
    const above = below.filter((other) => other !== run && ancestors.includes(other));
    const heir = above.find(
      (other) => !ancestorsOf(runs, other).some((each) => above.includes(each)),
    );
    run.slot = heir === undefined ? slot : `^${heir.view.id}`;
  }
}

/** True if the run holds a slot, or runs in that of an ancestor. */
export function hasSlot({ slot = "" }: StoredRun): boolean {
  return slot.startsWith("+") || slot.startsWith("^");
}

/** Gives the free slots of all groups to waiting runs, and returns these. */
export function passAllSlots(runs: MemoryRuns, workflow: string): readonly RunRef[] {
  const waiting = runs.of(workflow).flatMap(({ slot = "" }) => (slot.startsWith("?") ? slot : []));
  return [...new Set(waiting)].flatMap((slot) => passSlots(runs, workflow, slot.slice(1)));
}

/** Returns a run with its place in the line for a slot. */
export function viewOf(runs: MemoryRuns, run: StoredRun): RunView {
  return { ...run.view, ...defined({ slotWait: slotWaitOf(runs, run) }) };
}

function slotWaitOf(runs: MemoryRuns, { slot = "", view }: StoredRun): SlotWait | undefined {
  if (!slot.startsWith("?")) return undefined;
  const group = slot.slice(1);
  const waiting = waitingRuns(runs, view.workflow, group);
  const ahead = waiting.findIndex((other) => other.view.id === view.id);
  return { ...(group === "" ? {} : { group }), ahead };
}

function passSlots(runs: MemoryRuns, workflow: string, group: string): readonly RunRef[] {
  const free = Math.max(0, freeSlots(runs, workflow, group));
  const given = waitingRuns(runs, workflow, group).slice(0, free);
  for (const run of given) run.slot = `+${group}`;
  return given.map(({ view: { id } }) => ({ workflow, id }));
}

function freeSlots(runs: MemoryRuns, workflow: string, group: string): number {
  const held = runs.of(workflow).filter(({ slot }) => slot === `+${group}`);
  return (runs.slotCounts.get(workflow) ?? Infinity) - held.length;
}

/** In the order of their starts. */
function waitingRuns(runs: MemoryRuns, workflow: string, group: string): readonly StoredRun[] {
  const waiting = runs.of(workflow).filter(({ slot }) => slot === `?${group}`);
  return waiting.toSorted(
    (a, b) => a.view.createdAtMs - b.view.createdAtMs || compareIds(a.view.id, b.view.id),
  );
}

/** A parent holds its slot while it waits for its child. A child with another key needs a slot of that key. */
function findHolder(runs: MemoryRuns, run: StoredRun, group: string): string | undefined {
  const { workflow } = run.view;
  return ancestorsOf(runs, run).find(
    (above) => !hasEnded(above) && above.slot === `+${group}` && above.view.workflow === workflow,
  )?.view.id;
}

/** The parent, its parent, and so on. */
function ancestorsOf(runs: MemoryRuns, run: StoredRun): readonly StoredRun[] {
  const above: StoredRun[] = [];
  let { parent } = run.view;
  for (let depth = 0; parent !== undefined && depth < MOST_ANCESTORS; depth += 1) {
    const found = runs.find(parent);
    if (found !== undefined) above.push(found);
    parent = found?.view.parent;
  }
  return above;
}
