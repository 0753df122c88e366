import {
  defined,
  deepFreeze,
  isJsonObject,
  type ApiObject,
  type JsonValue,
  type ResourceType,
} from "@konverge/core";
import { createClientNodeApi, type ForwardAnswer, type ForwardRequest } from "@konverge/kube";
import type { AttemptKube } from "../define/attempt-kube.ts";
import type { WriteTrace } from "./attempt-trace.ts";
import type { Attempt } from "./attempt.ts";
import { isDryRun } from "@konverge/kube";
import { nameOf } from "./resolve-target.ts";

/** The generated APIs of client-node for a handler: their calls and writes are those of the attempt. */
export function createAttemptApi(attempt: Attempt): AttemptKube["api"] {
  const forward = (request: ForwardRequest) => forwardInAttempt(attempt, request);
  return (type) => createClientNodeApi(type, forward);
}

/** Sends a request of client-node, and records its write. */
export function forwardInAttempt(
  attempt: Attempt,
  request: ForwardRequest,
): Promise<ForwardAnswer> {
  return attempt.call(async () => {
    const answer = await attempt.client.forward(request);
    noteAnswer(attempt, request, answer);
    return answer;
  });
}

function noteAnswer(
  attempt: Attempt,
  { method, path, headers }: ForwardRequest,
  { target, sent, value, error }: ForwardAnswer,
): void {
  if (target === undefined) return;
  if (attempt.client.isSensitive(target)) {
    // What was sent is noted as well: the server quotes it in errors.
    for (const content of [sent, value]) noteSecretsIn(attempt, content);
  }
  const object = objectOf(value);
  if (error !== undefined || method === "GET" || object === undefined) return;
  if (isDryRun({ method, path, body: sent })) return;
  const { subresource, group, version, resource } = target;
  const { namespace } = object.metadata;
  const type: ResourceType = {
    group,
    version,
    kind: object.kind,
    resource,
    scope: namespace === undefined ? "Cluster" : "Namespaced",
  };
  const fromVersion = versionIn(sent);
  // The server writes nothing if the object is already the same.
  if (method !== "DELETE" && fromVersion === object.metadata.resourceVersion) return;
  attempt.trace.noteWrite({
    verb: verbOf(method, headers),
    type,
    name: nameOf(object),
    object,
    ...defined({ subresource, fromVersion: method === "DELETE" ? undefined : fromVersion }),
  });
  const { cache } = attempt.runtime;
  // Other subresources, such as scale, return objects of other kinds.
  if (subresource !== undefined && subresource !== "status") return;
  if (method === "DELETE") cache.noteDelete(type, object);
  else cache.noteWrite(type, deepFreeze(object));
}

function verbOf(
  method: ForwardRequest["method"],
  headers: ForwardRequest["headers"],
): WriteTrace["verb"] {
  switch (method) {
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "DELETE":
      return "delete";
    default: {
      const type = Object.entries(headers).find(([name]) => name.toLowerCase() === "content-type");
      return type?.[1].startsWith("application/apply-patch") === true ? "apply" : "patch";
    }
  }
}

/** The object of a response: not a Status, a list, or a review without a name. */
function objectOf(value: JsonValue | undefined): ApiObject | undefined {
  if (!isJsonObject(value) || value["kind"] === "Status") return undefined;
  const metadata = value["metadata"];
  const isObject = isJsonObject(metadata) && typeof metadata["name"] === "string";
  return isObject && typeof metadata["uid"] === "string"
    ? (value as unknown as ApiObject)
    : undefined;
}

function noteSecretsIn(attempt: Attempt, content: JsonValue | undefined): void {
  if (Array.isArray(content)) {
    // The operations of a JSON patch.
    const values = content.map((each) => (isJsonObject(each) ? each["value"] : each));
    return attempt.trace.secrets.note({ values });
  }
  if (!isJsonObject(content)) return;
  const items = Array.isArray(content["items"]) ? content["items"].filter(isJsonObject) : [content];
  for (const item of items) attempt.trace.secrets.note(item);
}

function versionIn(body: JsonValue | undefined): string | undefined {
  const metadata = isJsonObject(body) ? body["metadata"] : undefined;
  const version = isJsonObject(metadata) ? metadata["resourceVersion"] : undefined;
  return typeof version === "string" ? version : undefined;
}
