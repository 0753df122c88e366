import { afterAll, beforeAll, expect, test } from "vitest";
import { startEmbedded, startReal, type TestedServer } from "../servers.ts";
import { installParts, removeParts } from "./compare-go-programs.ts";
import { findGoPrograms, GO_SCENARIOS } from "./find-go-programs.ts";
import { programOutput } from "./program-output.ts";

const isLong = process.env["KONVERGE_TEST_LONG"] === "1";
const log = (line: string) => console.error(line);
const servers: TestedServer[] = [];
let program = "";
let missing = "";

beforeAll(async () => {
  const found = await findGoPrograms({ log, build: isLong });
  if ("missing" in found) {
    missing = found.missing;
    return;
  }
  program = found.path;
  servers.push(await startEmbedded());
  const real = await startReal(log);
  if (real !== undefined) servers.push(real);
  for (const server of servers) await installParts(server);
}, 400_000);
afterAll(async () => {
  for (const server of servers) {
    await removeParts(server);
    await server.stop();
  }
});

test.for(GO_SCENARIOS)("the Go program %s runs as with kube-apiserver", async (name, { skip }) => {
  const [embedded, real] = servers;
  if (embedded === undefined) return skip(missing);
  const here = await programOutput(embedded, program, [name]);
  expect(here).toMatch(/^exit code 0$/m);
  if (real !== undefined) expect(here).toBe(await programOutput(real, program, [name]));
});
