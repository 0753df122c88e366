import type { AttemptKube } from "../define/attempt-kube.ts";
import { createMutate } from "./attempt-mutate.ts";
import { createAttemptReads } from "./attempt-reads.ts";
import { createAttemptWrites } from "./attempt-writes.ts";
import type { Attempt } from "./attempt.ts";
import { mutateStatusBy } from "./mutate-status.ts";

/** The API server as the handler of this attempt sees it. */
export function createAttemptKube(attempt: Attempt): AttemptKube {
  const mutate = createMutate(attempt);
  return {
    ...createAttemptReads(attempt),
    ...createAttemptWrites(attempt),
    mutate,
    mutateStatus: mutateStatusBy(mutate),
  };
}
