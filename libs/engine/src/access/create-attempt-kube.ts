import type { KubeCalls } from "@konverge/kube";
import type { AttemptKube } from "../define/attempt-kube.ts";
import { createAttemptApi } from "./attempt-api.ts";
import { createLaneChange } from "./attempt-mutate.ts";
import { createAttemptReads } from "./attempt-reads.ts";
import type { Attempt } from "./attempt.ts";
import { bindChildren } from "./bind-children.ts";
import { bindClusters } from "./bind-clusters.ts";
import { attemptHost } from "./call-host.ts";
import { createChangeCalls } from "./change-calls.ts";
import { createCollectionCalls } from "./collection-calls.ts";
import { createEventCall } from "./event-call.ts";
import { createExtractCall } from "./extract-call.ts";
import { createRawCalls } from "./raw-calls.ts";
import { createWriteCalls } from "./write-calls.ts";

/** The API server as the handler of this attempt sees it. */
export function createAttemptKube(attempt: Attempt): AttemptKube {
  const calls = createCalls(attempt);
  return {
    ...calls,
    reconcileChildren: bindChildren(attempt, calls),
    on: bindClusters(attempt, () => calls, createCalls),
  };
}

function createCalls(attempt: Attempt): KubeCalls<"handler"> {
  const host = attemptHost(attempt);
  return {
    ...createAttemptReads(attempt),
    ...createWriteCalls(host),
    ...createChangeCalls(host, createLaneChange(attempt)),
    ...createCollectionCalls(host),
    ...createRawCalls(host),
    ...createEventCall(host),
    ...createExtractCall(host),
    api: createAttemptApi(attempt),
  };
}
