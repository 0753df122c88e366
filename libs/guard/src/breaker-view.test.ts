import { KonvergeError, type BreakerMode, type GateCall } from "@konverge/core";
import { expect, test } from "vitest";
import { createBreakerView } from "./breaker-view.ts";

const CALL: GateCall = { verb: "get", resource: "pods", priority: "event" };

function retryAfterMs(mode: BreakerMode, waitMs: number, random: number): number | undefined {
  const view = createBreakerView({
    probe: () => Promise.resolve(),
    onBreaker: () => undefined,
    onHealth: () => undefined,
    clock: () => 0,
    random: () => random,
    schedule: () => () => undefined,
    failuresToPause: 12,
    live: () => 1,
  });
  view.learn({ mode, generation: 2, waitMs });
  const refused = view.refuse(CALL);
  return refused?.retryAfterMs;
}

test.each([0, 1])(
  "P6: defers calls to an isolated server by at most 2 s, so that they resume soon after the reset (random %d)",
  (random) => {
    expect(retryAfterMs("isolated", 30_000, random)).toBeLessThanOrEqual(2_000);
  },
);

test.each([1, 12, 40])(
  "a process pauses after %d configured failures in a row",
  (failuresToPause) => {
    const view = createBreakerView({
      probe: () => Promise.resolve(),
      onBreaker: () => undefined,
      onHealth: () => undefined,
      clock: () => 0,
      random: () => 0,
      schedule: () => () => undefined,
      failuresToPause,
      live: () => 1,
    });
    for (let failures = 1; failures < failuresToPause; failures += 1) view.noteEnd("failed");
    expect(view.health).toBe("well");
    view.noteEnd("failed");
    expect(view.health).not.toBe("well");
  },
);

test.each([0, 1])("defers calls until the breaker can close (random %d)", (random) => {
  expect(retryAfterMs("open", 8_000, random)).toBeGreaterThanOrEqual(8_000);
});

test("without credentials, stays unauthorized until a call has credentials again", async () => {
  const due: (() => void)[] = [];
  const seen: string[] = [];
  const view = createBreakerView({
    // As a client does: it has no credentials, then it has some.
    probe: async () => {
      if (due.length < 3) view.noteNoCredentials(missing);
      else view.refuse(CALL);
    },
    onBreaker: () => undefined,
    onHealth: (health, cause) => seen.push(`${health} ${cause?.message ?? ""}`.trim()),
    clock: () => 0,
    random: () => 0,
    schedule: (_ms, work) => {
      due.push(work);
      return () => undefined;
    },
    failuresToPause: 12,
    live: () => 1,
  });
  const missing = new KonvergeError("kube_unreachable", "no token", { retryAfterMs: 4_000 });
  expect(view.noteNoCredentials(missing)).toMatchObject({
    code: "deferred",
    message: "no token; the call was not sent",
    retryAfterMs: 4_000,
    cause: missing,
  });
  view.noteNoCredentials(missing);
  for (let n = 0; n < 3; n++) {
    expect(view.health).toBe("unauthorized");
    expect(due).toHaveLength(n + 1);
    due[n]?.();
    await Promise.resolve();
  }
  expect(view.health).toBe("well");
  expect(seen).toEqual(["unauthorized no token", "well"]);
});

test("without credentials and without a probe, lets the next call try again", () => {
  let retry: () => void = () => undefined;
  const view = createBreakerView({
    probe: undefined,
    onBreaker: () => undefined,
    onHealth: () => undefined,
    clock: () => 0,
    random: () => 0,
    schedule: (_ms, work) => {
      retry = work;
      return () => undefined;
    },
    failuresToPause: 12,
    live: () => 1,
  });
  view.noteNoCredentials(new KonvergeError("kube_unreachable", "no token"));
  expect(view.health).toBe("unauthorized");
  retry();
  expect(view.health).toBe("well");
});

test("ends the pause after rejected credentials by a call of its own", async () => {
  let nowMs = 0;
  let sent = 0;
  let due: { readonly ms: number; readonly work: () => void } | undefined;
  const view = createBreakerView({
    probe: async () => {
      if (view.refuse({ ...CALL, probe: true }) !== undefined) return;
      sent += 1;
      view.noteEnd("ok");
    },
    onBreaker: () => undefined,
    onHealth: () => undefined,
    clock: () => nowMs,
    random: () => 0.5,
    schedule: (ms, work) => {
      due = { ms, work };
      return () => undefined;
    },
    failuresToPause: 12,
    live: () => 1,
  });
  for (let n = 0; n < 3; n++) view.noteEnd("unauthorized");
  expect(view.health).toBe("unauthorized");
  for (let n = 0; n < 10 && view.health !== "well"; n++) {
    nowMs += due?.ms ?? 0;
    due?.work();
    await Promise.resolve();
  }
  expect({ health: view.health, sent, nowMs }).toEqual({ health: "well", sent: 1, nowMs: 5_000 });
});
