import { afterAll, beforeAll, expect, test } from "vitest";
import { runSuite, type Report } from "./run-suite.ts";
import { CASES } from "./cases/index.ts";
import { startEmbedded, startReal, type TestedServer } from "./servers.ts";

const servers: TestedServer[] = [];
let report: Report;

beforeAll(async () => {
  servers.push(await startEmbedded());
  const real = await startReal((line) => console.error(line));
  if (real !== undefined) servers.push(real);
  report = await runSuite(servers);
});
afterAll(async () => {
  for (const server of servers) await server.stop();
});

test("every case ran", () => {
  expect(report.cases).toBe(CASES.length);
});
test.for(CASES.map(({ name }) => name))("%s", (name) => {
  const failures = report.failures.filter((one) => one.case === name);
  const differences = report.differences.filter((one) => one.case === name);
  expect(failures).toEqual([]);
  expect(differences).toEqual([]);
});
