import { defined, metadataOf, type JsonObject } from "@konverge/core";
import type { PlannedCall } from "../contract/call-plan.ts";
import type { ApiAnswer } from "../contract/http-answer.ts";
import { parseApiError } from "../errors/parse-api-error.ts";
import type { FieldConflict } from "./field-ownership.ts";
import type { Place } from "./planned-call.ts";

const HEADERS = { "content-type": "application/json" } as const;

/** Answers a call as the API server would. */
export function succeed(call: PlannedCall, value: JsonObject, status = 200): ApiAnswer {
  const text = JSON.stringify(value);
  call.onAnswer?.({ status, headers: HEADERS, body: text });
  return { status, headers: HEADERS, text, value };
}

/** Answers a read in the form that it accepts. */
export function show(call: PlannedCall, object: JsonObject): ApiAnswer {
  return succeed(
    call,
    call.accept?.includes("as=PartialObjectMetadata") === true
      ? {
          apiVersion: "meta.k8s.io/v1",
          kind: "PartialObjectMetadata",
          metadata: metadataOf(object),
        }
      : object,
  );
}

interface Failure {
  readonly causes?: readonly JsonObject[];
  readonly code: number;
  readonly reason: string;
  readonly message: string;
}

const nameOf = ({ group, resource }: Place) => (group === "" ? resource : `${resource}.${group}`);

export const notFound = (place: Place): Failure => ({
  code: 404,
  reason: "NotFound",
  message: `${nameOf(place)} "${place.name ?? ""}" not found`,
});

export const alreadyExists = (place: Place, name: string): Failure => ({
  code: 409,
  reason: "AlreadyExists",
  message: `${nameOf(place)} "${name}" already exists`,
});

export const modified = (place: Place): Failure => ({
  code: 409,
  reason: "Conflict",
  message: `Operation cannot be fulfilled on ${nameOf(place)} "${place.name ?? ""}": the object has been modified; please apply your changes to the latest version and try again`,
});

export const replaced = (place: Place, uids: { readonly given: string; readonly uid: string }) => ({
  code: 409,
  reason: "Conflict",
  message: `Operation cannot be fulfilled on ${nameOf(place)} "${place.name ?? ""}": Precondition failed: UID in precondition: ${uids.given}, UID in object meta: ${uids.uid}`,
});

/** An apply without force of fields that others own. */
export const fieldConflict = (conflicts: readonly FieldConflict[]): Failure => ({
  code: 409,
  reason: "Conflict",
  message: `Apply failed with ${conflicts.length} conflicts: ${conflicts
    .map(({ manager, path }) => `conflict with "${manager}": ${path}`)
    .join(", ")}`,
  causes: conflicts.map(({ manager, path }) => ({
    reason: "FieldManagerConflict",
    message: `conflict with "${manager}"`,
    field: path,
  })),
});

/** The server does not see that the object is being deleted. */
export const newFinalizers = ({ name = "" }: Place, added: readonly string[]): Failure => {
  const message = `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers ${JSON.stringify(added)}`;
  return {
    code: 422,
    reason: "Invalid",
    message: `"${name}" is invalid: metadata.finalizers: ${message}`,
    causes: [{ reason: "FieldValueForbidden", message, field: "metadata.finalizers" }],
  };
};

/** A JSON Patch that does not apply. */
export const inapplicable = (): Failure => ({
  code: 422,
  reason: "Invalid",
  message: "the server rejected our request due to an error in our request",
});

/** Answers a call with an error of the API server. */
export function fail(
  call: PlannedCall,
  place: Place,
  { code, reason, message, causes }: Failure,
): Promise<never> {
  const { name = "", group, resource: kind } = place;
  const details = { name, group, kind, ...defined({ causes }) };
  const status = { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message };
  const body = JSON.stringify({
    ...status,
    ...(code === 422 && causes === undefined ? {} : { details }),
  });
  call.onAnswer?.({ status: code, headers: HEADERS, body });
  const { verb, ref, sensitive } = call;
  return Promise.reject(
    parseApiError({ status: code, body, verb, sensitive, ...defined({ ref }) }),
  );
}
