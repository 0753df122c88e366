import { parseJson } from "@konverge/core";
import { expect, test } from "vitest";
import { Secret } from "../names/kinds.ts";
import { isExpired } from "../errors/error-predicates.ts";
import type { WatchEvent } from "../contract/watch-event.ts";
import { readWatch } from "./watch.ts";

const source = { type: Secret, ref: Secret, sensitive: true };

async function* chunksOf(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
const readAll = async (text: string, size = 1_000): Promise<WatchEvent<any>[]> => {
  const events: WatchEvent<any>[] = [];
  for await (const event of readWatch<any>(chunksOf(Buffer.from(text), size), source))
    events.push(event);
  return events;
};
const line = (eventType: string, object: string) => `{"type":"${eventType}","object":${object}}\n`;
const named = (name: string, extra = "") =>
  `{"metadata":{"name":"${name}","resourceVersion":"5"}${extra}}`;

test("events are complete, regardless of how the bytes are split", async () => {
  const text =
    line("ADDED", named("ä", ',"n":9007199254740993')) +
    line("MODIFIED", named("b")) +
    "\n" +
    line("DELETED", named("c")) +
    line("BOOKMARK", '{"metadata":{"resourceVersion":"9"}}');
  const expected = await readAll(text);
  expect(expected.map(({ kind }) => kind)).toEqual(["added", "changed", "deleted", "bookmark"]);
  expect(expected[0]).toEqual({
    kind: "added",
    object: parseJson(named("ä", ',"n":9007199254740993')),
  });
  expect(expected[3]).toEqual({ kind: "bookmark", resourceVersion: "9" });
  for (const size of [1, 2, 3, 7, 64]) expect(await readAll(text, size)).toEqual(expected);
});
test("an unterminated last line is a broken stream, not an event", async () => {
  expect(await readAll(line("ADDED", named("a")) + '{"type":"ADD')).toHaveLength(1);
});
test("throws the error of an ERROR event", async () => {
  const status = '{"kind":"Status","code":410,"reason":"Expired","message":"too old"}';
  const reading = readAll(line("ERROR", status));
  await expect(reading).rejects.toSatisfy(isExpired);
});
test.each([
  ["no JSON", '{"type":"ADDED","object":{"data":{"password":"hunter2"}'],
  ["no event", '{"password":"hunter2"}'],
  ["an unknown type", '{"type":"RENAMED","object":{"metadata":{"name":"hunter2"}}}'],
  ["an object without a name", '{"type":"ADDED","object":{"metadata":{"labels":{"a":"hunter2"}}}}'],
])("a line that is %s breaks the watch and is not quoted", async (_title, text) => {
  const error: unknown = await readAll(`${text}\n`).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: "kube_unreachable" });
  expect(String(error)).not.toContain("hunter2");
});
