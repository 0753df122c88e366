import { expect, test } from "vitest";
import { simulate } from "../../apps/cli/src/testing/index.ts";
import { EXAMPLES } from "./example-scenarios.ts";
import { isLongRun } from "../support/test-run.ts";

const SEEDS = isLongRun ? 500 : 3;
const FIRST_SEED = isLongRun ? 1 : 1 + Math.floor(Math.random() * 100);

test.each(EXAMPLES)("%s of the examples passes", async (_name, config, scenario) => {
  const { failure } = await simulate(config, scenario, { seeds: SEEDS, firstSeed: FIRST_SEED });
  expect(failure?.story).toBeUndefined();
});
