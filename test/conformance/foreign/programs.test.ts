import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startEmbedded, startReal, type TestedServer } from "../servers.ts";
import { installCrds, removeCrds } from "./compare-programs.ts";
import { FOREIGN_PROGRAMS, type ForeignPrograms } from "./foreign-programs.ts";
import { programOutput } from "./program-output.ts";
import { isLongRun } from "../../support/test-run.ts";

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
    found = await programs.find({ log, build: isLongRun });
    if ("missing" in found) return;
    for (const server of servers) await installCrds(server, programs.crds);
  });
  afterAll(async () => {
    if ("missing" in found) return;
    for (const server of servers) await removeCrds(server, programs.crds);
  });

  const scenarios = Object.entries(programs.scenarios).filter(
    ([, when]) => isLongRun || when === "always",
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
