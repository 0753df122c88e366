import { isDeepStrictEqual } from "node:util";
import { defined } from "@konverge/core";
import type { PlanRecord } from "@konverge/records";
import { changesOf } from "../text/patch-changes.ts";
import { FleetPlan, isChange, reasonOf, type FleetChange, type FleetEntry } from "./fleet-plan.ts";

type Change = PlanRecord["changes"][number];

/**
 * Compares the plan of new code with that of the running code, and returns the differences. Without a plan of the running code, all
 * changes are differences.
 */
export function comparePlans(
  key: string,
  running: PlanRecord | undefined,
  next: PlanRecord,
): FleetEntry {
  const changes = changesBetween(running?.changes ?? [], next.changes);
  const notes = notesBetween(running, next);
  const problem = problemOf(running, next);
  const isDeletion = (action: string | undefined) => action === "deleted" || action === "replaced";
  const deletes = changes.filter(
    ({ action, difference, instead }) =>
      difference !== "dropped" && isDeletion(action) && !isDeletion(instead),
  );
  return {
    key,
    complete: problem === undefined,
    ...defined({ error: problem }),
    changes,
    total: changes.length,
    deletes: deletes.length,
    runs: countOf(notes, STARTS),
    externals: countOf(notes, CALLS),
    ...(notes.length === 0 ? {} : { notes }),
  };
}

/** True if both plans are about the same version of the object. */
export function areComparable(running: PlanRecord, next: PlanRecord): boolean {
  return running.uid === next.uid && running.versionBefore === next.versionBefore;
}

const STARTS = "starts workflow ";
const CALLS = "calls ctx.external ";

function problemOf(running: PlanRecord | undefined, next: PlanRecord): string | undefined {
  // New code may repair an attempt that fails with the running code.
  if (!next.complete) return `new code: ${reasonOf(next)}`;
  if (running === undefined) return undefined;
  if (!areComparable(running, next)) return "the object changes too often to compare its plans";
  const cut = [running, next].find(({ moreChanges = 0 }) => moreChanges > 0);
  return (
    cut && `the plan lists only ${cut.changes.length} changed objects, so others are not compared`
  );
}

function changesBetween(
  running: readonly Change[],
  next: readonly Change[],
): FleetEntry["changes"] {
  const before = new Map(running.map((change) => [idOf(change), change]));
  const after = new Map(next.map((change) => [idOf(change), change]));
  const differences = next.flatMap((change) => {
    const former = before.get(idOf(change));
    return differenceOf(former, change);
  });
  const dropped = running.flatMap((change) => {
    if (!isChange(change) || isChange(after.get(idOf(change)))) return [];
    return [{ ...FleetPlan.changeOf(change), difference: "dropped" as const }];
  });
  return [...differences, ...dropped];
}

function differenceOf(former: Change | undefined, change: Change): FleetChange[] {
  if (!isChange(change)) return [];
  if (!isChange(former)) return [{ ...FleetPlan.changeOf(change), difference: "added" }];
  if (isEqual(former, change)) return [];
  const { action } = former;
  return [
    {
      ...FleetPlan.changeOf(change),
      difference: "altered",
      ...(action === change.action
        ? { fields: fieldsBetween(former, change) }
        : { instead: action }),
    },
  ];
}

function isEqual(one: Change, other: Change): boolean {
  if (one.digest !== undefined && other.digest !== undefined) return one.digest === other.digest;
  return one.action === other.action && isDeepStrictEqual(one.patch, other.patch);
}

/** The fields that only one of the changes sets, or that they set to other values. Empty if the records do not show them. */
function fieldsBetween(one: Change, other: Change): string[] {
  const values = new Map(changesOf(one.patch).map(({ path, value }) => [path, value]));
  const others = new Map(changesOf(other.patch).map(({ path, value }) => [path, value]));
  return [...new Set([...values.keys(), ...others.keys()])]
    .filter((path) => !isDeepStrictEqual(values.get(path), others.get(path)))
    .toSorted();
}

function idOf({ cluster = "", resource, namespace = "", name }: Change): string {
  return JSON.stringify([cluster, resource, namespace, name]);
}

/** The differences that are not changes of objects. */
function notesBetween(running: PlanRecord | undefined, next: PlanRecord): string[] {
  const before = running === undefined ? [] : effectsOf(running);
  const after = effectsOf(next);
  const ends =
    running === undefined || !running.complete || outcomeOf(running) === outcomeOf(next)
      ? []
      : [`ends with ${outcomeOf(next)}, not ${outcomeOf(running)}`];
  return [
    ...without(after, before),
    ...without(before, after).map((effect) => `no longer ${effect}`),
    ...ends,
  ];
}

function effectsOf({ runs, externals, events }: PlanRecord): string[] {
  return [
    ...runs.map(({ workflow }) => `${STARTS}${workflow}`),
    ...externals.map((name) => `${CALLS}${name}`),
    ...events.map(({ type, reason }) => `emits ${type} event ${reason}`),
  ];
}

/** Delays are rounded to seconds. */
function outcomeOf({ outcome, afterMs }: PlanRecord): string {
  return afterMs === undefined ? outcome : `${outcome} after ${Math.round(afterMs / 1_000)} s`;
}

/** The entries of a list that another one does not have, or has less often. */
function without(list: readonly string[], other: readonly string[]): string[] {
  const rest = [...other];
  return list.filter((entry) => {
    const index = rest.indexOf(entry);
    if (index === -1) return true;
    rest.splice(index, 1);
    return false;
  });
}

function countOf(notes: readonly string[], prefix: string): number {
  return notes.filter((note) => note.startsWith(prefix)).length;
}
