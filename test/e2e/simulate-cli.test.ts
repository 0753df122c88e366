import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { SimulationReport } from "../../apps/cli/src/testing/index.ts";
import { useChildren } from "../support/child.ts";
import { runCommand } from "./cli-runner.ts";

const start = useChildren();
const main = fileURLToPath(new URL("../../apps/cli/src/main.ts", import.meta.url));

test("simulate runs parts of the seeds in processes, and prints the failure with the lowest seed", async () => {
  const file = "test/sim/planted/charging.simulation.ts";
  const args = ["simulate", file, "--seeds", "24", "--parallel", "2", "-o", "jsonl"];
  const child = start([main, ...args]);
  expect(await child.exited).toEqual([1, null]);
  const report = child.messages[0] as unknown as SimulationReport;
  expect(report).toMatchObject({ runs: 10, failure: { seed: 10 } });
  expect(report.failure?.story).toContain("happened twice");
});

test("simulate in one process prints the number of runs", async () => {
  const args = ["simulate", "test/sim/node-pool.simulation.ts", "--seeds", "2", "--parallel", "1"];
  const { code, stdout } = await runCommand([...args, "--fault", "crash"], {});
  expect(code).toBe(0);
  expect(stdout).toMatch(/^no failure in 2 runs with faults, \d+ attempts, \d+ API calls\n$/);
});

test("simulate rejects a file without a simulation", async () => {
  const args = ["simulate", "test/support/until.ts", "--parallel", "1"];
  await expect(runCommand(args, {})).rejects.toThrow(
    "test/support/until.ts has no simulation as default export; write `export default { config, scenario } satisfies Simulation`",
  );
});
