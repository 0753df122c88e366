import { resourceId, type JsonObject } from "@konverge/core";
import { joinFieldErrors, type FieldError } from "./field-error.ts";

/** Group and plural of a resource, as used in error texts. */
export interface GroupResource {
  readonly group: string;
  readonly resource: string;
}

interface Details {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly {
    readonly reason?: string;
    readonly message?: string;
    readonly field?: string;
  }[];
  readonly retryAfterSeconds?: number;
}

/** An error response with a `Status` body. The HTTP layer sends it. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly code: number;
  readonly reason: string;
  readonly details: Details | undefined;

  constructor(code: number, reason: string, message: string, details?: Details) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.details = details;
  }

  get retryAfterSeconds(): number {
    return this.details?.retryAfterSeconds ?? 0;
  }

  /** Members in Go's order; empty ones are omitted. */
  toStatus(): JsonObject {
    const details = this.details;
    return {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      ...(this.message === "" ? {} : { message: this.message }),
      ...(this.reason === "" ? {} : { reason: this.reason }),
      ...(details === undefined ? {} : { details: detailsToJson(details) }),
      code: this.code,
    };
  }
}

function detailsToJson({ name, group, kind, uid, causes, retryAfterSeconds }: Details): JsonObject {
  return {
    ...(name ? { name } : {}),
    ...(group ? { group } : {}),
    ...(kind ? { kind } : {}),
    ...(uid ? { uid } : {}),
    ...(causes === undefined || causes.length === 0
      ? {}
      : { causes: causes.map((cause) => ({ ...cause })) }),
    ...(retryAfterSeconds ? { retryAfterSeconds } : {}),
  };
}

const quote = (text: string) => JSON.stringify(text);
const about = ({ group, resource }: GroupResource, name: string) => ({
  name,
  group,
  kind: resource,
});

export const notFound = (resource: GroupResource, name: string): StatusError =>
  new StatusError(
    404,
    "NotFound",
    `${resourceId(resource)} ${quote(name)} not found`,
    about(resource, name),
  );

/** The path names no served resource; the body is a Status if the group is known. */
export const unknownResource = (): StatusError =>
  new StatusError(404, "NotFound", "the server could not find the requested resource", {});

/** The real server has this resource, and this one does not. */
export const notEmbedded = (resource: string): StatusError =>
  new StatusError(
    404,
    "NotFound",
    `the embedded API server does not serve ${resource}; it serves the kinds of konverge/kinds and of CRDs: use a real API server for it`,
    {},
  );

export const alreadyExists = (resource: GroupResource, name: string): StatusError =>
  new StatusError(
    409,
    "AlreadyExists",
    `${resourceId(resource)} ${quote(name)} already exists`,
    about(resource, name),
  );

export const beingDeleted = (resource: GroupResource, name: string): StatusError =>
  new StatusError(
    409,
    "AlreadyExists",
    `object is being deleted: ${resourceId(resource)} ${quote(name)} already exists`,
    about(resource, name),
  );

export const generateNameConflict = (resource: GroupResource, name: string): StatusError =>
  new StatusError(
    409,
    "AlreadyExists",
    `${resourceId(resource)} ${quote(name)} already exists, the server was not able to generate a unique name for the object`,
    { ...about(resource, name), retryAfterSeconds: 1 },
  );

export const conflict = (resource: GroupResource, name: string, why: string): StatusError =>
  new StatusError(
    409,
    "Conflict",
    `Operation cannot be fulfilled on ${resourceId(resource)} ${quote(name)}: ${why}`,
    about(resource, name),
  );

export const staleVersion = (resource: GroupResource, name: string): StatusError =>
  conflict(
    resource,
    name,
    "the object has been modified; please apply your changes to the latest version and try again",
  );

export const forbiddenByServer = (
  resource: GroupResource,
  name: string,
  why: string,
  causes: Details["causes"] = [],
): StatusError =>
  new StatusError(
    403,
    "Forbidden",
    name === ""
      ? `${resourceId(resource)} is forbidden: ${why}`
      : `${resourceId(resource)} ${quote(name)} is forbidden: ${why}`,
    { ...about(resource, name), causes },
  );

/** `kind` is a Kind for an object and a plural for a missing version; `group` is printed after the dot. */
export function invalidObject(
  { group, kind }: { readonly group: string; readonly kind: string },
  name: string,
  errors: readonly FieldError[],
): StatusError {
  const type = group === "" ? kind : `${kind}.${group}`;
  const causes = errors.map(({ type: reason, body, field }) => ({
    reason,
    message: body,
    field: field === "" ? "<nil>" : field,
  }));
  return new StatusError(
    422,
    "Invalid",
    `${type} ${quote(name)} is invalid: ${joinFieldErrors(errors)}`,
    { name, group, kind, causes },
  );
}

export const badRequest = (message: string): StatusError =>
  new StatusError(400, "BadRequest", message);

export const methodNotAllowed = (): StatusError =>
  new StatusError(
    405,
    "MethodNotAllowed",
    "the server does not allow this method on the requested resource",
    {},
  );

export const methodNotSupported = (resource: GroupResource, action: string): StatusError =>
  new StatusError(
    405,
    "MethodNotAllowed",
    `${action} is not supported on resources of kind ${quote(resourceId(resource))}`,
    about(resource, ""),
  );

export const unsupportedMediaType = (accepted: readonly string[]): StatusError =>
  new StatusError(
    415,
    "UnsupportedMediaType",
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(", ")}`,
  );

/** The router, which serves the built-in kinds, adds empty details. */
export const notAcceptable = (accepted: readonly string[], byRouter: boolean): StatusError =>
  new StatusError(
    406,
    "NotAcceptable",
    `only the following media types are accepted: ${accepted.join(", ")}`,
    byRouter ? {} : undefined,
  );

export const tooLargeEntity = (why: string): StatusError =>
  new StatusError(413, "RequestEntityTooLarge", `Request entity too large: ${why}`);

/** The error of any JSON Patch that cannot be applied; it does not report the failing operation. */
export const patchRefused = (): StatusError =>
  new StatusError(
    422,
    "Invalid",
    "the server rejected our request due to an error in our request",
    {},
  );

export const expired = (message: string): StatusError => new StatusError(410, "Expired", message);

export const tooLargeVersion = (wanted: string, current: number): StatusError =>
  new StatusError(
    504,
    "Timeout",
    `Timeout: Too large resource version: ${wanted}, current: ${current}`,
    {
      causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
      retryAfterSeconds: 1,
    },
  );

/** An error that the real server does not convert: 500 without a reason. */
export const unconverted = (message: string): StatusError => new StatusError(500, "", message);
