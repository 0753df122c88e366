import { expect, test } from "vitest";
import { playSeed } from "./replay/play-program.ts";
import { isLongRun, seed } from "../support/test-run.ts";

const PROGRAMS = isLongRun ? 1_000 : 200;
const PARTS = 5;

/** Each part has its own seed, so that a stopped long run continues with `KONVERGE_TEST_SEED=<seed> ... -t "part 3 "`. */
const parts = Array.from({ length: isLongRun ? PARTS : 1 }, (_, at) => ({
  part: at + 1,
  from: seed + at * PROGRAMS,
}));

test.each(parts)(
  `part $part of ${parts.length}: ${PROGRAMS} random programs see the same answers in each execution and are undone completely, from seed $from`,
  async ({ from }) => {
    for (let at = from; at < from + PROGRAMS; at += 1) {
      const findings = await playSeed(at);
      expect(findings, `KONVERGE_TEST_SEED=${at}`).toEqual([]);
    }
  },
);
