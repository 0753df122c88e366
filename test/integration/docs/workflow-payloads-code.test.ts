import { randomBytes } from "node:crypto";
import { isEncoded, type PayloadCodec } from "@konverge/core";
import { decodeValue, defineWorkflow, encodeValue } from "@konverge/workflow";
import { expect, test } from "vitest";
import { testWorkflow } from "../../../apps/cli/src/testing/index.ts";
import { blockOf, functionOf } from "./load-block.ts";

const key = () => randomBytes(32).toString("base64");
const twice = defineWorkflow("twice", { version: 1 }, async (w, input: string) => {
  return await w.step("double", () => input + input);
});

test("docs/workflow-payloads.md: a configuration encrypts the values of its runs", async () => {
  const block = blockOf("docs/workflow-payloads.md ts 1");
  const text = block.text.replace(/^import .*workflows\.ts";\n/m, "");
  const make = await functionOf<{ readonly codec: PayloadCodec }>(
    { ...block, text },
    ["workflows", "process"],
    "exported",
  );
  const env = { KEY_2026_01: key(), KEY_2026_07: key() };
  const { codec } = await make({ workflows: [twice], process: { env } });
  const run = await testWorkflow(twice, "ab", { codec }).settle();
  expect(run).toMatchObject({ status: "done", result: "abab" });
});

test("docs/workflow-payloads.md: a caller encodes an input", async () => {
  const block = blockOf("docs/workflow-payloads.md ts 2");
  const encode = await functionOf(block, ["codec", "encodeValue"], "input");
  const codec: PayloadCodec = { encode: (bytes) => bytes, decode: (bytes) => bytes };
  const input = await encode({ codec, encodeValue });
  expect(isEncoded(input)).toBe(true);
  const context = { workflow: "pay", kind: "input" } as const;
  expect(await decodeValue(codec, input, context)).toEqual({ card: "4711" });
});

test("docs/workflow-payloads.md: large values are kept in another store", async () => {
  const block = blockOf("docs/workflow-payloads.md ts 3");
  const make = await functionOf<PayloadCodec>(block, ["bucket", "keys"], "codec");
  const objects = new Map<string, Uint8Array>();
  const bucket = {
    upload: async (name: string, bytes: Uint8Array) => void objects.set(name, bytes),
    download: async (name: string) => objects.get(name),
  };
  const codec = await make({ bucket, keys: { "2026-07": key() } });
  const input = randomBytes(20_000).toString("base64");
  const run = await testWorkflow(twice, input, { codec }).settle();
  expect(run.result).toBe(input + input);
  expect(objects.size).toBeGreaterThan(0);
});

test("docs/workflow-payloads.md: a codec calls a key service", async () => {
  const block = blockOf("docs/workflow-payloads.md ts 4");
  const make = await functionOf<PayloadCodec>(block, ["keyService"], "codec");
  const used: string[] = [];
  const turn = async (bytes: Uint8Array, workflow: string) => {
    used.push(workflow);
    return bytes.map((byte) => byte ^ 1);
  };
  const codec = await make({ keyService: { encrypt: turn, decrypt: turn } });
  expect((await testWorkflow(twice, "ab", { codec }).settle()).result).toBe("abab");
  expect(new Set(used)).toEqual(new Set(["twice"]));
});
