import { forbidden, notSupported, type FieldError } from "../errors/field-error.ts";
import { badRequest, invalidObject, StatusError } from "../errors/status-error.ts";
import { readBoolean } from "./write-options.ts";

/** Options of a list or watch, from the query. */
export interface ListOptions {
  readonly isWatch: boolean;
  /** As sent; empty means the newest. */
  readonly resourceVersion: string;
  readonly versionMatch: string;
  /** 0: no limit. */
  readonly limit: number;
  readonly continueToken: string;
  /** Undefined: the default of the server. */
  readonly timeoutMs: number | undefined;
  readonly bookmarks: boolean;
  readonly sendInitialEvents: boolean | undefined;
}

/** @throws StatusError 400 or 422 */
export function readListOptions(query: URLSearchParams): ListOptions {
  const timeoutSeconds = readInteger(query, "timeoutSeconds");
  const options: ListOptions = {
    isWatch: readBoolean(query, "watch") ?? false,
    resourceVersion: query.get("resourceVersion") ?? "",
    versionMatch: query.get("resourceVersionMatch") ?? "",
    limit: readInteger(query, "limit") ?? 0,
    continueToken: query.get("continue") ?? "",
    timeoutMs: timeoutSeconds === undefined ? undefined : timeoutSeconds * 1_000,
    bookmarks: readBoolean(query, "allowWatchBookmarks") ?? false,
    sendInitialEvents: readBoolean(query, "sendInitialEvents"),
  };
  const errors = options.isWatch ? validateWatch(options) : validateList(options);
  if (errors.length > 0) {
    throw invalidObject({ group: "meta.k8s.io", kind: "ListOptions" }, "", errors);
  }
  return options;
}

/**
 * Returns the number of a version; undefined for none.
 * @throws StatusError 400 for a list, 500 for a watch, if it is invalid
 */
export function parseVersion(text: string, isWatch: boolean): number | undefined {
  if (text === "") return undefined;
  if (/^\d+$/.test(text)) return Number(text);
  const why = `strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`;
  if (!isWatch)
    throw badRequest(
      `invalid resource version: resourceVersion: Invalid value: ${JSON.stringify(text)}: ${why}`,
    );
  throw new StatusError(500, "", `resourceVersion: Invalid value: ${JSON.stringify(text)}: ${why}`);
}

function validateList(options: ListOptions): FieldError[] {
  const { versionMatch: match, resourceVersion, continueToken, sendInitialEvents } = options;
  const errors: FieldError[] = [];
  const refuse = (detail: string) => errors.push(forbidden("resourceVersionMatch", detail));
  if (match !== "") {
    if (resourceVersion === "") {
      refuse("resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if (continueToken !== "") refuse("resourceVersionMatch is forbidden when continue is provided");
    if (match !== "Exact" && match !== "NotOlderThan") {
      errors.push(notSupported("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""]));
    }
    if (match === "Exact" && resourceVersion === "0") {
      refuse('resourceVersionMatch "exact" is forbidden for resourceVersion "0"');
    }
  }
  if (sendInitialEvents !== undefined) {
    errors.push(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
  }
  return errors;
}

function validateWatch(options: ListOptions): FieldError[] {
  const { versionMatch: match, continueToken, sendInitialEvents } = options;
  const errors: FieldError[] = [];
  const refuse = (detail: string) => errors.push(forbidden("resourceVersionMatch", detail));
  if (sendInitialEvents !== undefined && match !== "NotOlderThan") {
    refuse("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  }
  if (match !== "") {
    if (sendInitialEvents === undefined) {
      refuse("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    }
    if (match !== "NotOlderThan") {
      errors.push(notSupported("resourceVersionMatch", match, ["NotOlderThan"]));
    }
    if (continueToken !== "") refuse("resourceVersionMatch is forbidden when continue is provided");
  }
  return errors;
}

function readInteger(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name);
  if (value === null || value === "") return undefined;
  if (/^-?\d+$/.test(value)) return Number(value);
  throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(value)}: invalid syntax`);
}
