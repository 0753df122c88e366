import { shortName } from "@konverge/core";
import type { PlannedCall } from "../contract/call-plan.ts";
import { pathOnly, type Place } from "../plan/planned-call.ts";

/** For messages, for example `ConfigMap prod/settings`. */
export function aboutOf(call: PlannedCall, place: Place | undefined): string {
  if (place === undefined) return `${call.method} ${pathOnly(call.path)}`;
  const kind = call.ref?.kind ?? "";
  const part = place.subresource === undefined ? "" : `/${place.subresource}`;
  const { namespace, name, resource } = place;
  if (name !== undefined) {
    const path = shortName({ namespace, name });
    return `${kind === "" ? resource : kind} ${path}${part}`;
  }
  const [, query = ""] = call.path.split("?", 2);
  const selectors = [...new URLSearchParams(query)].filter(([field]) => field.endsWith("Selector"));
  const selected = selectors.map(([field, value]) => ` with ${field} ${value}`).join("");
  return `list of ${resource}${namespace === undefined ? "" : ` in ${namespace}`}${selected}`;
}
