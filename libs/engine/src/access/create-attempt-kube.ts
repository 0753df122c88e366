import type { ApiObject } from "@konverge/core";
import type { AttemptKube, ResourceTarget, StatusDraft } from "../define/attempt-kube.ts";
import { createMutate } from "./attempt-mutate.ts";
import { createAttemptReads } from "./attempt-reads.ts";
import { createAttemptWrites } from "./attempt-writes.ts";
import type { Attempt } from "./attempt.ts";

/** The API server as the handler of this attempt sees it. */
export function createAttemptKube(attempt: Attempt): AttemptKube {
  const mutate = createMutate(attempt);
  return {
    ...createAttemptReads(attempt),
    ...createAttemptWrites(attempt),
    mutate,
    mutateStatus: <T extends ApiObject>(
      target: T | ResourceTarget<T>,
      change: (draft: StatusDraft<T>) => void | Promise<void>,
      how = {},
    ) =>
      mutate<T>(target, (draft) => change(draft as StatusDraft<T>), {
        ...how,
        subresource: "status",
      }),
  };
}
