import { isJsonObject, type JsonValue, type ResourceType } from "@konverge/core";
import {
  parsePath,
  type ForwardAnswer,
  type ForwardRequest,
  type RawRequest,
  type RawResponse,
} from "@konverge/kube";
import type { VerbScope } from "./verb-scope.ts";

/** Sends a request of client-node, a write only while this worker holds the run. */
export async function forward(scope: VerbScope, request: ForwardRequest): Promise<ForwardAnswer> {
  const client = await scope.client();
  if (request.method !== "GET") await scope.assertHeld();
  const answer = await client.forward(request);
  const { target, sent, value } = answer;
  if (target !== undefined) {
    for (const object of [...objectsIn(sent), ...objectsIn(value)]) {
      scope.noteSeen({ client, type: target }, object);
    }
  }
  return answer;
}

/** Sends any other request, a write only while this worker holds the run. */
export async function sendRaw(scope: VerbScope, request: RawRequest): Promise<RawResponse> {
  const client = await scope.client();
  if (request.method !== "GET") await scope.assertHeld();
  const place = parsePath(request.path);
  const note = (content: JsonValue | undefined): void => {
    if (place === undefined) return;
    const type: ResourceType = { ...place, scope: "Namespaced" };
    for (const object of objectsIn(content)) scope.noteSeen({ client, type }, object);
  };
  note(Array.isArray(request.body) ? { items: request.body } : request.body);
  const response = await client.raw(request);
  note(response.body);
  return response;
}

/** The object, or the items of a list. */
function objectsIn(value: JsonValue | undefined): readonly object[] {
  if (!isJsonObject(value)) return [];
  const { items } = value;
  return Array.isArray(items) ? items.filter(isJsonObject) : [value];
}
