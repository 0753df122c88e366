import { resourceId } from "@konverge/core";
import type { ConfigInput } from "./define-config.ts";
import { openKindsOf } from "./mutation-options.ts";

/**
 * Returns the resources that a configuration marks as sensitive, as `plural.group`. The clients of all clusters must redact
 * their content (P12), also in calls that name only a path or a kind.
 */
export function sensitiveResources({
  controllers = [],
  workflows = [],
  mutations,
}: Pick<ConfigInput, "controllers" | "workflows" | "mutations">): string[] {
  const types = [
    ...controllers.flatMap(({ sources }) => sources.map(({ type }) => type)),
    ...workflows.flatMap(({ kinds }) => kinds),
    ...openKindsOf(mutations),
  ];
  return [...new Set(types.filter(({ sensitive }) => sensitive === true).map(resourceId))];
}
