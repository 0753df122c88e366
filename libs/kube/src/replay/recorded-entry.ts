import { defined, isJsonObject, KonvergeError, metadataOf, type ErrorCode } from "@konverge/core";
import type { PlannedCall } from "../contract/call-plan.ts";
import type { ApiAnswer } from "../contract/http-answer.ts";
import { ConnectionBroken } from "../errors/connection-broken.ts";
import { answerCall } from "../wire/answer-call.ts";
import { parsePath } from "../names/resource-path.ts";
import { bodyOf, isTrial, pathOnly, queryOf, type Place } from "../plan/planned-call.ts";
import type { RecordedCall, RecordedError, SentRequest } from "./recorded-call.ts";

/** A recorded call, and whether the replay has made it. */
export interface RecordedEntry {
  readonly call: RecordedCall;
  readonly place: Place | undefined;
  readonly isWrite: boolean;
  isUsed: boolean;
}

export function entryOf(call: RecordedCall): RecordedEntry {
  return {
    call,
    place: parsePath(call.path),
    isWrite: call.method !== "GET" && !isTrial(asCall(call)),
    isUsed: false,
  };
}

function asCall({ method, path, body }: SentRequest): PlannedCall {
  return { verb: "get", method, path, body, sensitive: false };
}

/** True for a write that the server has stored. */
export function hasLanded({ isWrite, call: { answer } }: RecordedEntry): boolean {
  return isWrite && answer !== undefined && answer.status < 300;
}

/** Parameters of a read that do not select what it returns. */
const FREE = ["resourceVersion", "resourceVersionMatch", "limit", "timeoutSeconds"];

/** Equal for reads of the same objects in the same form. */
export function readKey({ path, accept = "" }: Pick<RecordedCall, "path" | "accept">): string {
  const query = queryOf(path);
  for (const name of FREE) query.delete(name);
  query.sort();
  return `${pathOnly(path)}?${query.toString()} ${accept}`;
}

/** Equal for writes that replace each other in two versions of a handler. */
export function writeKey(call: SentRequest): string {
  const path = pathOnly(call.path);
  if (call.method !== "POST") return `${call.method} ${path}`;
  const { name, generateName } = metadataOf(bodyOf(asCall(call)) ?? {});
  return `POST ${path}/${String(name ?? `${String(generateName ?? "")}*`)}`;
}

/** The object or collection that a write changes, without its subresource. */
export function writtenPlace(call: SentRequest): Place | undefined {
  const place = parsePath(call.path);
  if (place === undefined) return undefined;
  const { subresource: _part, ...whole } = place;
  if (whole.name !== undefined || call.method !== "POST") return whole;
  const given = nameIn(call.answer?.body) ?? nameIn(call.body);
  return given === undefined ? whole : { ...whole, name: given };
}

function nameIn(body: string | undefined): string | undefined {
  if (body === undefined) return undefined;
  const object = bodyOf({ verb: "get", method: "POST", path: "", body, sensitive: false });
  const name = isJsonObject(object) ? metadataOf(object)["name"] : undefined;
  return typeof name === "string" ? name : undefined;
}

export function idOf({ group, resource, namespace = "", name = "" }: Place): string {
  return `${resource}.${group}/${namespace}/${name}`;
}

/** True if the write may have changed what is read at the place. */
export function concerns(write: Place, read: Place): boolean {
  if (write.group !== read.group || write.resource !== read.resource) return false;
  const isIn = read.namespace === undefined || write.namespace === undefined;
  if (!isIn && write.namespace !== read.namespace) return false;
  return read.name === undefined || write.name === undefined || write.name === read.name;
}

/** Answers a call as recorded. @throws as the recorded call */
export function replayAnswer(call: PlannedCall, { call: recorded }: RecordedEntry): ApiAnswer {
  const { answer, error } = recorded;
  if (answer !== undefined) return answerCall(call, answer);
  throw recordedError(error ?? { code: "internal", message: "" });
}

export function recordedError({ code, message, retryAfterMs, broken }: RecordedError): Error {
  if (broken === true) return new ConnectionBroken(message, new Error(message));
  return new KonvergeError(code as ErrorCode, message, defined({ retryAfterMs }));
}
