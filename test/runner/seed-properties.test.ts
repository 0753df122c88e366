import * as fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";

const before = fc.readConfigureGlobal();
afterEach(() => {
  vi.unstubAllEnvs();
  fc.configureGlobal(before);
});

test("properties without a seed draw from the seed of the run", async () => {
  const draw = async (seed: string) => {
    vi.stubEnv("KONVERGE_TEST_SEED", seed);
    vi.resetModules();
    await import("./seed-properties.ts");
    const drawn: number[] = [];
    fc.assert(fc.property(fc.integer(), (value) => void drawn.push(value)));
    return drawn;
  };
  expect(await draw("7")).toEqual(await draw("7"));
  expect(await draw("7")).not.toEqual(await draw("8"));
});
