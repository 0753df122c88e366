import type { ApiObject } from "@konverge/core";
import type { AttemptKube } from "../define/attempt-kube.ts";

/** `mutate` through the status subresource, where the draft has a status. */
export function mutateStatusBy(mutate: AttemptKube["mutate"]): AttemptKube["mutateStatus"] {
  const mutateStatus: AttemptKube["mutateStatus"] = (target, change, how) =>
    mutate(target, change as (draft: ApiObject) => void | Promise<void>, {
      ...how,
      subresource: "status",
    });
  return mutateStatus;
}
