import { findCause, isKonvergeError, KonvergeError } from "@konverge/core";
import type { CallPlan, PlannedCall, SendPlanned } from "../contract/call-plan.ts";
import type { ApiAnswer } from "../contract/http-answer.ts";
import { findApiError } from "../errors/api-exception.ts";
import { isBadRequest } from "../errors/error-predicates.ts";
import { hasConnection } from "../names/connections.ts";
import { createPlanned } from "./create-planned.ts";
import { deleteCollectionPlanned, deletePlanned } from "./delete-planned.ts";
import { listPlanned } from "./list-planned.ts";
import { dry, isNamed, isTrial, labelOf, pathOnly, placeOf, type Place } from "./planned-call.ts";
import { PlannedObjects } from "./planned-objects.ts";
import { PlannedWrites } from "./planned-writes.ts";
import { getPlanned } from "./read-planned.ts";
import { scalePlanned } from "./scale-planned.ts";
import { writePlanned } from "./write-planned.ts";
import type { Writing } from "./writing.ts";

/** A plan of the calls to one cluster, with the objects that it has read and would write. */
export interface KubePlan extends CallPlan {
  readonly objects: PlannedObjects;
  readonly writes: PlannedWrites;
}

export interface KubePlanOptions {
  /**
   * True for a plan that users approve: it covers all reads, and rejects writes with an unknown effect. Default false.
   */
  readonly isExact?: boolean | undefined;
  /** Keys the digests of writes, which then cover values of sensitive kinds. */
  readonly salt?: string | undefined;
}

/** The path of the kinds of a version. */
const DISCOVERY = /^\/(api|apis\/[^/?]+)\/[^/?]+$/;

/** Creates a plan: its writes are sent as dry runs, and its reads return the planned objects. */
export function createKubePlan({ isExact = false, salt }: KubePlanOptions = {}): KubePlan {
  const objects = new PlannedObjects();
  const writes = new PlannedWrites(salt);
  // A write is planned on the result of the one before; reads between two writes run at the same time.
  let lastWrite: Promise<unknown> = Promise.resolve();
  let reads: Promise<unknown>[] = [];
  return {
    objects,
    writes,
    send(call, live) {
      const place = placeOf(call);
      if (call.method === "GET" && place === undefined) {
        // A client asks for the kinds of a version once, so the answer is not part of what the handler has read.
        return isExact && !DISCOVERY.test(call.path) ? readOther(objects, call, live) : live(call);
      }
      if (place !== undefined && call.sensitive) objects.noteSensitive(place);
      const checked = (sent: PlannedCall) =>
        live(sent).catch((error: unknown) => {
          noteNoDryRun(objects, sent, error);
          throw error;
        });
      const run = () =>
        plan({ objects, call, live: checked, isExact }, place).catch((error: unknown) => {
          // The handler may catch it, and then ends as if the call had been made.
          const refusal = findCause(error, isNotPlannable);
          if (refusal !== undefined) objects.noteRefusal(aboutOf(call, place), refusal.message);
          throw error;
        });
      if (call.method === "GET") {
        const read = lastWrite.then(run);
        // Keeps no answers.
        reads.push(read.then(ignore, ignore));
        return read;
      }
      const isSensitive = call.sensitive || (place !== undefined && objects.isSensitive(place));
      const write = writes.note(call, Promise.all([lastWrite, ...reads]).then(run), {
        isSensitive,
        values: objects.drawn,
      });
      lastWrite = write.then(ignore, ignore);
      reads = [];
      return write;
    },
  };
}

const ignore = (): void => undefined;

function isNotPlannable(error: unknown): error is KonvergeError {
  return isKonvergeError(error) && error.code === "not_plannable";
}

async function plan(writing: Writing, place: Place | undefined): Promise<ApiAnswer> {
  const { call, live } = writing;
  // A program may change anything, even when it answers a GET of a proxy.
  if (place === undefined || hasConnection(place.subresource)) {
    throw new KonvergeError(
      "not_plannable",
      `${aboutOf(call, place)} has no dry run; skip it while ctx.plan is true, or wrap it in ctx.external`,
    );
  }
  if (!isNamed(place)) return await ofCollection(writing, place);
  switch (place.subresource) {
    case undefined:
    case "status":
      if (call.method === "GET") return await getPlanned(writing, place);
      return call.method === "DELETE"
        ? await deletePlanned(writing, place)
        : await writePlanned(writing, place);
    case "scale":
      return await scalePlanned(writing, place);
    case "eviction":
      return await deletePlanned(writing, place);
    default:
      if (call.method === "GET") return await readPart(writing);
      return isTrial(call) ? await live(call) : await other(writing, place);
  }
}

/** A webhook with side effects rejects dry runs; the live write may succeed. */
function noteNoDryRun(objects: PlannedObjects, call: PlannedCall, error: unknown): void {
  if (!isBadRequest(error) || !findApiError(error)?.message.includes(NO_DRY_RUN)) return;
  const place = placeOf(call);
  objects.noteRefusal(
    place === undefined ? pathOnly(call.path) : labelOf(place),
    "an admission webhook does not support dry runs (sideEffects), so whether it admits the write is unknown",
  );
}

/** The text of the API server. */
const NO_DRY_RUN = "does not support dry run";

async function ofCollection(writing: Writing, place: Place): Promise<ApiAnswer> {
  const { call, live } = writing;
  switch (call.method) {
    case "GET":
      return await listPlanned(writing, place);
    case "POST":
      return await createPlanned(writing, place);
    case "DELETE":
      if (writing.isExact && !isTrial(call)) throw notExact(place);
      return await deleteCollectionPlanned(writing, place);
    default:
      return await live(dry(call));
  }
}

function notExact(place: Place): KonvergeError {
  return new KonvergeError(
    "not_plannable",
    `the deletion of a collection of ${place.resource} cannot be approved, because it deletes all objects that match at the time of the call; list the objects and delete each one`,
  );
}

/** Notes the answer of a read that the plan does not model. */
async function readOther(
  objects: PlannedObjects,
  call: PlannedCall,
  live: SendPlanned,
): Promise<ApiAnswer> {
  const answer = await live(call);
  objects.noteAnswer(call.path, answer.text);
  return answer;
}

/** A part of an object that the plan does not model, such as a log. */
async function readPart({ objects, call, live, isExact }: Writing): Promise<ApiAnswer> {
  return isExact ? await readOther(objects, call, live) : await live(call);
}

/** A subresource whose effect on its object only the server computes. */
async function other({ objects, call, live }: Writing, place: Place): Promise<ApiAnswer> {
  const about = `${labelOf(place)}/${place.subresource ?? ""}`;
  objects.noteGap(about, "the effect of this subresource on later reads is unknown");
  return await live(dry(call));
}

function aboutOf(call: PlannedCall, place: Place | undefined): string {
  if (place === undefined) return `${call.method} ${pathOnly(call.path)}`;
  return hasConnection(place.subresource)
    ? `${place.subresource ?? ""} of ${labelOf(place)}`
    : labelOf(place);
}
