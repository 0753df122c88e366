import { loadKubeCredentials, type MutateOptions } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { testServers } from "./kube-servers.ts";
import { startRequestRelay, type RequestRelay } from "./request-relay.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

/** What happens to the connection of a write, and whether one of its requests takes effect. */
interface WriteFault {
  readonly arrange: (
    this: void,
    relay: RequestRelay,
    match: { readonly method: string; readonly path: RegExp },
  ) => void;
  readonly applied: boolean;
}

/** The first request or its response is lost, and its repetition is refused. */
function lostThenRefused(
  lose: "loseRequest" | "loseAnswer",
  status: number,
  reason: string,
): WriteFault {
  return {
    arrange(relay, match) {
      relay[lose](match);
      relay.refuse(match, status, reason);
    },
    applied: lose === "loseAnswer",
  };
}

const FAULTS = {
  none: { arrange: () => undefined, applied: true },
  requestLost: { arrange: (relay, match) => relay.loseRequest(match), applied: true },
  responseLost: { arrange: (relay, match) => relay.loseAnswer(match), applied: true },
  bothRequestsLost: {
    arrange: (relay, match) => {
      relay.loseRequest(match);
      relay.loseRequest(match);
    },
    applied: false,
  },
  requestLostThenBusy: lostThenRefused("loseRequest", 429, "TooManyRequests"),
  responseLostThenBusy: lostThenRefused("loseAnswer", 429, "TooManyRequests"),
  responseLostThenUnauthorized: lostThenRefused("loseAnswer", 401, "Unauthorized"),
  responseLostThenForbidden: lostThenRefused("loseAnswer", 403, "Forbidden"),
} satisfies Record<string, WriteFault>;
type Fault = keyof typeof FAULTS;

const steps = fc.array(
  fc.record({
    kind: fc.constantFrom("increment", "set"),
    fault: fc.constantFrom(...(Object.keys(FAULTS) as Fault[])),
    strategy: fc.constantFrom<NonNullable<MutateOptions["strategy"]>>("guarded", "fields"),
  }),
  { minLength: 1, maxLength: 8 },
);

describe.each(testServers().map((server) => [server.name, server] as const))(
  "%s",
  (_name, server) => {
    test(`a mutate over a breaking connection is applied at most once, and repeated if that is safe (seed ${seed})`, async () => {
      const opened = await server.open();
      const relay = await startRequestRelay(loadKubeCredentials(opened.kubeconfig));
      let run = 0;
      try {
        await fc.assert(
          fc.asyncProperty(steps, async (sequence) => {
            const target = { namespace: "default", name: `broken-${process.pid}-${++run}` };
            const match = { method: "PATCH", path: new RegExp(`/${target.name}$`) };
            const model = { n: 0, v: 0 };
            await opened.client.create(ConfigMap, { metadata: target, data: { n: "0", v: "0" } });
            for (const [index, { kind, fault, strategy }] of sequence.entries()) {
              const { arrange, applied } = FAULTS[fault];
              arrange(relay, match);
              const outcome = await relay.client
                .mutate(
                  ConfigMap,
                  target,
                  (draft) => {
                    const data = (draft.data ??= {});
                    if (kind === "set") data["v"] = String(index + 1);
                    else data["n"] = String(Number(data["n"]) + 1);
                  },
                  { strategy },
                )
                .then(
                  () => "resolved",
                  (error: { readonly code: string }) => error.code,
                );
              if (applied && kind === "set") model.v = index + 1;
              if (applied && kind === "increment") model.n += 1;
              // Only the caller can decide whether an increment without a response is wanted again.
              const isKnown = !fault.startsWith("responseLost") || kind === "set";
              expect(outcome).toBe(applied && isKnown ? "resolved" : "kube_unreachable");
              const { data } = await opened.client.get(ConfigMap, target);
              expect(data).toEqual({ n: String(model.n), v: String(model.v) });
            }
            await opened.client.delete(ConfigMap, target);
          }),
          { seed, numRuns: isLongRun ? 100 : 15 },
        );
      } finally {
        await relay[Symbol.asyncDispose]();
        await opened.close();
      }
    });
  },
);
