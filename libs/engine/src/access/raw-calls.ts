import {
  defined,
  formatApiVersion,
  isJsonObject,
  type ApiObject,
  type JsonValue,
} from "@konverge/core";
import { evictPod, parsePath, readLogs, type RawRequest, type RawResponse } from "@konverge/kube";
import type { AttemptKube } from "../define/attempt-kube.ts";
import type { WriteTrace } from "./attempt-trace.ts";
import type { CallHost } from "./call-host.ts";
import { isDryRun } from "@konverge/kube";
import { nameOf, resolveTarget } from "./resolve-target.ts";
import { clientFor } from "./write-calls.ts";

/** The calls of subresources of Pods, and of everything without a call of its own. */
export function createRawCalls(host: CallHost): Pick<AttemptKube, "evict" | "logs" | "raw"> {
  return {
    evict: (pod, { gracePeriodSeconds, dryRun } = {}) =>
      host.call(async () => {
        const { type, name: at, uid } = await resolveTarget(host.client, pod, host.namespace);
        const client = clientFor(host, { dryRun });
        const isEvicted = await evictPod(client, type, { at, uid, gracePeriodSeconds });
        if (!isEvicted || dryRun === true) return;
        const apiVersion = formatApiVersion(type.group, type.version);
        const object = { apiVersion, kind: type.kind, metadata: { ...at, ...defined({ uid }) } };
        host.noteWrite({ verb: "create", type, name: at, subresource: "eviction", object });
      }),
    logs: (pod, options = {}) =>
      host.call(async () => {
        const { type, name: at } = await resolveTarget(host.client, pod, host.namespace);
        return await readLogs(host.client, type, { at, options });
      }),
    raw: (request) =>
      host.call(async () => {
        const place = parsePath(request.path);
        if (place !== undefined) noteContent(host, place, request.body);
        const response = await host.client.raw(request);
        if (place === undefined) return response;
        noteContent(host, place, response.body);
        const write = request.method === "GET" ? undefined : writeOf(request, response);
        if (write !== undefined) host.noteWrite(write);
        return response;
      }),
  };
}

type Place = NonNullable<ReturnType<typeof parsePath>>;

/** Lists have their objects as items. */
function noteContent(
  host: CallHost,
  { group, resource, version, kind }: Place,
  content: JsonValue | undefined,
): void {
  const type = { group, version, kind, resource, scope: "Namespaced" } as const;
  if (Array.isArray(content)) {
    host.noteSecrets(type, {
      values: content.map((each) => (isJsonObject(each) ? each["value"] : each)),
    });
    return;
  }
  if (!isJsonObject(content)) return;
  const { items } = content;
  for (const object of Array.isArray(items) ? items.filter(isJsonObject) : [content]) {
    host.noteSecrets(type, object);
  }
}

const VERBS: Readonly<Record<Exclude<RawRequest["method"], "GET">, WriteTrace["verb"]>> = {
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/** The write of an object in a response; undefined for a dry run, a Status, a list, or a review without a name. */
function writeOf(request: RawRequest, { body }: RawResponse): WriteTrace | undefined {
  const { method, path, contentType = "" } = request;
  const place = parsePath(path);
  if (place === undefined || method === "GET") return undefined;
  if (isDryRun({ ...request, body: request.body })) return undefined;
  if (!isJsonObject(body) || !isJsonObject(body["metadata"])) return undefined;
  if (typeof body["metadata"]["uid"] !== "string") return undefined;
  const object = body as unknown as ApiObject;
  const { group, version, resource, subresource } = place;
  const scope = object.metadata.namespace === undefined ? "Cluster" : "Namespaced";
  const isApply = method === "PATCH" && contentType.startsWith("application/apply-patch");
  return {
    verb: isApply ? "apply" : VERBS[method],
    type: { group, version, kind: object.kind, resource, scope },
    name: nameOf(object),
    object,
    ...defined({ subresource }),
  };
}
