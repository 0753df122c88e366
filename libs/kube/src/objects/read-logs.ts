import { KonvergeError, type ResourceType } from "@konverge/core";
import type { LogOptions } from "../contract/call-options.ts";
import type { KubeClient } from "../contract/kube-client.ts";
import { objectPath, type NamespacedName } from "../names/resource-path.ts";

const LIMIT_BYTES = 2 ** 20;

/** Reads the log of a container. @throws KonvergeError `invalid_request` for another kind than Pod */
export async function readLogs(
  client: Pick<KubeClient, "raw">,
  type: ResourceType,
  { at, options }: { readonly at: NamespacedName; readonly options: LogOptions },
): Promise<string> {
  if (type.group !== "" || type.resource !== "pods") {
    throw new KonvergeError("invalid_request", `${type.kind} ${at.name} has no logs; pass a Pod`);
  }
  const { container, previous, tailLines, sinceSeconds, timestamps } = options;
  const { limitBytes = LIMIT_BYTES } = options;
  const { body } = await client.raw({
    method: "GET",
    path: objectPath(type, at, "log"),
    query: { container, previous, tailLines, sinceSeconds, timestamps, limitBytes },
  });
  return typeof body === "string" ? body : JSON.stringify(body);
}
