import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import { playSeed } from "./replay/play-program.ts";

const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? randomInt(2 ** 31));
const isLong = process.env["KONVERGE_TEST_LONG"] === "1";
const PROGRAMS = isLong ? 1_000 : 200;
const PARTS = 100;

/** Each part has its own seed, so that a stopped long run continues with `KONVERGE_TEST_SEED=<seed> ... -t "part 38 "`. */
const parts = Array.from({ length: isLong ? PARTS : 1 }, (_, at) => ({
  part: at + 1,
  from: seed + at * PROGRAMS,
}));

test.each(parts)(
  `part $part of ${parts.length}: ${PROGRAMS} random programs see the same answers in each execution and are undone completely, from seed $from`,
  { timeout: 900_000 },
  async ({ from }) => {
    for (let at = from; at < from + PROGRAMS; at += 1) {
      const findings = await playSeed(at);
      expect(findings, `KONVERGE_TEST_SEED=${at}`).toEqual([]);
    }
  },
);
