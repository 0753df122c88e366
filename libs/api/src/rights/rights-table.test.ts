import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { INSTALLATION_VERBS, RIGHTS } from "./rights-table.ts";

const page = readFileSync("docs/identity.md", "utf8");

test("docs/identity.md lists every operation with its verb", () => {
  const lists = page.slice(page.indexOf("## Grant rights"), page.indexOf("Details:"));
  const documented = [...lists.matchAll(/^- (?:`(\w+)`|the action of the body): (.+(?:\n  .+)*)/gm)]
    .flatMap(([, verb = "action", names = ""]) =>
      names.split(",").map((name) => `${name.trim()}: ${verb}`),
    )
    .toSorted();
  const known = Object.entries(RIGHTS)
    .flatMap(([id, right]) => ("verb" in right ? [`${id}: ${right.verb}`] : []))
    .toSorted();
  expect(documented).toEqual(known);
});

test("docs/identity.md lists the verbs on the installation", () => {
  for (const verb of Object.values(INSTALLATION_VERBS)) expect(page).toMatch(`| \`${verb}\``);
});

test("every operation of the OpenAPI document that requires a token has a right", () => {
  const { paths } = JSON.parse(readFileSync("docs/openapi.json", "utf8")) as {
    readonly paths: Record<string, Record<string, { operationId: string; description: string }>>;
  };
  const operations = Object.values(paths)
    .flatMap((methods) => Object.values(methods))
    .filter(({ description }) => description.startsWith("Role: "))
    .map(({ operationId }) => operationId);
  expect(Object.keys(RIGHTS).toSorted()).toEqual(operations.toSorted());
});
