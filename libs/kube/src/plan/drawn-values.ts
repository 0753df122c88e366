import { isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";
import type { Place } from "./planned-call.ts";

export interface Draw {
  readonly previous: JsonObject | undefined;
  readonly next: JsonObject;
  /** The body of the write. */
  readonly given: string;
}

/** Returns the addresses and ports of a Service that the server has drawn for a write. Each dry run draws other ones. */
export function drawnValues(
  { group, resource }: Place,
  { previous, next, given }: Draw,
): JsonValue[] {
  if (resource !== "services" || group !== "") return [];
  const known = new Set(addressesOf(previous ?? {}));
  return addressesOf(next).filter((value) => !known.has(value) && !given.includes(String(value)));
}

function addressesOf({ spec }: JsonObject): JsonValue[] {
  if (!isJsonObject(spec)) return [];
  const { clusterIP, clusterIPs, ports, healthCheckNodePort } = spec;
  const nodePorts = (Array.isArray(ports) ? ports : []).map((port) =>
    isJsonObject(port) ? port["nodePort"] : undefined,
  );
  const lists = [...(Array.isArray(clusterIPs) ? clusterIPs : []), ...nodePorts];
  return [clusterIP, healthCheckNodePort, ...lists].filter((value) => value !== undefined);
}
