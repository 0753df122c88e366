import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { REPLAY_PATCHES } from "../chaos/teeth/replay-patches.ts";
import { Child } from "../support/child.ts";
import { partsOfRun } from "../support/test-run.ts";

/** Proves that `replay.test.ts` can fail: without one of the protections, it finds a program that breaks a promise. */

const MAIN = fileURLToPath(new URL("replay/play-main.ts", import.meta.url));
const PRELOAD = new URL("../chaos/teeth/load-patched.ts", import.meta.url).href;
/** A fixed seed, since each protection must be missed within these programs. */
const SEED = 20_000;
const PROGRAMS = 6_000;
/** Programs that miss a protection, where the search for one takes long. The test begins with them. */
const FOUND: Readonly<Record<string, number>> = {
  "race-undo": 20_453,
  "spread-end": 20_278,
  "live-timers": 20_605,
  "resume-news": 21_286,
  "second-cancel": 20_138,
};

/** The short form draws a third of the protections. */
const SHARE = 3;
const patches = partsOfRun(Object.keys(REPLAY_PATCHES), SHARE);

test.each(patches)("random programs find that %s is missing", async (patch) => {
  const from = FOUND[patch] ?? SEED;
  const child = new Child([`--import=${PRELOAD}`, MAIN, String(from), String(PROGRAMS)], {
    env: { FLEET_PATCH: patch },
  });
  await child.exited;
  const [message] = child.messages;
  expect(message).toMatchObject({
    patch,
    findings: expect.arrayContaining([expect.any(String)]),
  });
});
