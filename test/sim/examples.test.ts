import { expect, test } from "vitest";
import { simulate } from "../../apps/cli/src/testing/index.ts";
import { EXAMPLES } from "./example-scenarios.ts";
import { isLongRun, seed } from "../support/test-run.ts";

const SEEDS = isLongRun ? 50 : 3;
const FIRST_SEED = 1 + (seed % 500);

test.each(EXAMPLES)("%s of the examples passes", async (_name, config, scenario) => {
  const { failure } = await simulate(config, scenario, { seeds: SEEDS, firstSeed: FIRST_SEED });
  expect(failure?.story).toBeUndefined();
});
