import type { JsonObject, JsonValue } from "@konverge/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/until.ts";
import { definitions } from "./objects.ts";
import { definitionOf } from "./ruled-definition.ts";
import { Choices, randomRule, randomValue, ruledSchema } from "./random-rules.ts";
import { startEmbedded, startReal, type TestedServer } from "./servers.ts";
import { isLongRun, seed } from "../support/test-run.ts";

/** Each round has its own definition. */
const ROUNDS = isLongRun ? 10 : 1;
const RULES = 30;
const OBJECTS = isLongRun ? 12 : 4;
const servers: TestedServer[] = [];

beforeAll(async () => {
  servers.push(await startEmbedded());
  const real = await startReal((line) => console.error(line));
  if (real !== undefined) servers.push(real);
});
afterAll(async () => {
  for (const server of servers) await server.stop();
});

interface Result {
  readonly code: number;
  readonly causes: readonly string[];
  readonly warning: string;
}

async function send(
  { api }: TestedServer,
  request: string,
  body: JsonValue,
  type = "application/json",
): Promise<Result> {
  const [method = "", path = ""] = request.split(" ");
  const { code, text, headers } = await api.send({
    method,
    path,
    body: JSON.stringify(body),
    headers: { "Content-Type": type },
  });
  // A kind that is not served yet has a plain text.
  const { details } = JSON.parse(text.startsWith("{") ? text : "{}") as {
    readonly details?: { readonly causes?: readonly JsonObject[] };
  };
  const causes = (details?.causes ?? [])
    .map((cause) => normalise(JSON.stringify(cause)))
    .toSorted();
  return { code, causes, warning: String(headers["warning"] ?? "") };
}

/**
 * The real server names a type after the time, and the type of an empty list after the number of signatures that it has
 * tried. Its parser's texts are its own.
 */
const normalise = (text: string) =>
  text
    .replaceAll(/selfType\d+/g, "selfType")
    .replaceAll(/\b_var\d+/g, "dyn")
    .replace(/(<input>:\d+):\d+: Syntax error.*/s, "$1");

/** Only the real server estimates costs. Its library fails when an error reaches a loop inside of another. */
const isIncomparable = ({ causes }: Result) =>
  causes.some((cause) => cause.includes("budget") || cause.includes("internal error"));

const definition = (plural: string, properties: JsonObject): JsonObject =>
  definitionOf(
    { group: "random.konverge.dev", plural, kind: `Kind${plural}` },
    { spec: { type: "object", properties } },
  );
const ruled = (rule: JsonObject): JsonObject => ({
  ...ruledSchema,
  "x-kubernetes-validations": [rule],
});

interface Mismatch {
  readonly what: string;
  readonly embedded: Result;
  readonly real: Result;
}

/** Sends a request to all servers, and notes if the results differ. Returns that of the real server. */
async function compare(
  mismatches: Mismatch[],
  what: string,
  ...request: [string, JsonValue, string?]
): Promise<Result> {
  const results: Result[] = [];
  for (const server of servers) results.push(await send(server, ...request));
  const [embedded, real = embedded] = results;
  if (embedded === undefined || real === undefined) throw new Error("no server");
  const isEqual = JSON.stringify(embedded) === JSON.stringify(real);
  if (!isEqual && !isIncomparable(real)) mismatches.push({ what, embedded, real });
  return real;
}

test(`random rules and writes have equal results on both servers (KONVERGE_TEST_SEED=${seed})`, async () => {
  const choices = new Choices(seed);
  const mismatches: Mismatch[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const plural = `r${seed}x${process.pid}x${round}s`;
    const rules: JsonObject[] = [];
    while (rules.length < RULES) {
      const rule = randomRule(choices);
      const body = definition(plural, { one: ruled(rule) });
      const { code } = await compare(
        mismatches,
        JSON.stringify(rule),
        `POST ${definitions}?dryRun=All`,
        body,
      );
      if (code === 201) rules.push(rule);
    }
    await runRound({ choices, mismatches }, plural, rules);
  }
  expect(mismatches).toEqual([]);
});

async function runRound(
  { choices, mismatches }: { readonly choices: Choices; readonly mismatches: Mismatch[] },
  plural: string,
  rules: readonly JsonObject[],
): Promise<void> {
  const properties = Object.fromEntries(rules.map((rule, index) => [`c${index}`, ruled(rule)]));
  const made = definition(plural, properties);
  const path = `/apis/random.konverge.dev/v1/${plural}`;
  const object = (name: string, spec: JsonObject): JsonObject => ({
    apiVersion: "random.konverge.dev/v1",
    kind: `Kind${plural}`,
    metadata: { name },
    spec,
  });
  for (const server of servers) {
    await send(server, `POST ${definitions}`, made);
    await until(
      `${plural} are served`,
      async () => (await send(server, `POST ${path}`, object("base", {}))).code !== 404,
    );
  }
  for (const [index, rule] of rules.entries()) {
    const name = `c${index}`;
    for (let turn = 0; turn < OBJECTS; turn++) {
      const [before, after] = [randomValue(choices), randomValue(choices)];
      const what = `${JSON.stringify(rule)} on ${JSON.stringify(before)}`;
      const first = object(`o${index}-${turn}`, { [name]: before });
      const { code } = await compare(mismatches, what, `POST ${path}`, first);
      if (code !== 201) continue;
      await compare(
        mismatches,
        `${what}, changed to ${JSON.stringify(after)}`,
        `PATCH ${path}/o${index}-${turn}?dryRun=All`,
        [{ op: "replace", path: `/spec/${name}`, value: after }],
        "application/json-patch+json",
      );
    }
  }
  for (const server of servers) {
    await send(server, `DELETE ${definitions}/${plural}.random.konverge.dev`, {});
  }
}
