import type { AttemptKube } from "../define/attempt-kube.ts";
import { createAttemptApi } from "./attempt-api.ts";
import { createMutate } from "./attempt-mutate.ts";
import { createAttemptReads } from "./attempt-reads.ts";
import type { Attempt } from "./attempt.ts";
import { attemptHost } from "./call-host.ts";
import { mutateStatusBy } from "./mutate-status.ts";
import { createWriteCalls } from "./write-calls.ts";

/** The API server as the handler of this attempt sees it. */
export function createAttemptKube(attempt: Attempt): AttemptKube {
  const mutate = createMutate(attempt);
  return {
    ...createAttemptReads(attempt),
    ...createWriteCalls(attemptHost(attempt)),
    api: createAttemptApi(attempt),
    mutate,
    mutateStatus: mutateStatusBy(mutate),
  };
}
