import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import { playSeed } from "./replay/play-program.ts";

const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? randomInt(2 ** 31));
const isLong = process.env["KONVERGE_TEST_LONG"] === "1";
const programs = isLong ? 100_000 : 1_000;

test(
  `${programs} random programs see the same answers in each execution and are undone completely, from seed ${seed}`,
  { timeout: isLong ? 7_200_000 : 600_000 },
  async () => {
    for (let at = 0; at < programs; at += 1) {
      const findings = await playSeed(seed + at);
      expect(findings, `KONVERGE_TEST_SEED=${seed + at}`).toEqual([]);
    }
  },
);
