import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startEmbedded, startReal, type TestedServer } from "../servers.ts";
import { installCrds, removeCrds } from "./compare-programs.ts";
import { FOREIGN_PROGRAMS, type ForeignPrograms } from "./foreign-programs.ts";
import { programOutput } from "./program-output.ts";

const isLong = process.env["KONVERGE_TEST_LONG"] === "1";
const log = (line: string) => console.error(line);
const servers: TestedServer[] = [];

beforeAll(async () => {
  servers.push(await startEmbedded());
  const real = await startReal(log);
  if (real !== undefined) servers.push(real);
});
afterAll(async () => {
  for (const server of servers) await server.stop();
});

describe.for([...FOREIGN_PROGRAMS])("$name", (programs: ForeignPrograms) => {
  let found: Awaited<ReturnType<ForeignPrograms["find"]>> = { missing: "not looked for" };

  beforeAll(async () => {
    found = await programs.find({ log, build: isLong });
    if ("missing" in found) return;
    for (const server of servers) await installCrds(server, programs.crds);
  }, 900_000);
  afterAll(async () => {
    if ("missing" in found) return;
    for (const server of servers) await removeCrds(server, programs.crds);
  });

  const scenarios = Object.entries(programs.scenarios).filter(
    ([, when]) => isLong || when === "always",
  );

  test.for(scenarios)("%s run as with kube-apiserver", async ([scenario], { skip }) => {
    if ("missing" in found) return skip(found.missing);
    const command = [...found.command, scenario];
    const outputs = await Promise.all(servers.map((server) => programOutput(server, command)));
    const [here, there = here] = outputs;
    expect(here).toMatch(/^exit code 0$/m);
    expect(here).toBe(there);
  });
});
