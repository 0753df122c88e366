import { expect, test } from "vitest";
import { ConfigMap } from "../names/kinds.ts";
import { watchObjects } from "./read-calls.ts";
import type { ScopedCalls } from "./scoped-calls.ts";

test("a watch without another option is aborted after 90 s of silence, between two bookmarks of a server", async () => {
  const streamed: unknown[] = [];
  const calls = {
    refOf: () => ConfigMap,
    shared: { isSensitive: () => false },
    stream: async (_call: unknown, options: unknown) => {
      streamed.push(options);
      return [];
    },
  } as unknown as ScopedCalls;
  for await (const event of watchObjects(calls, ConfigMap, {})) throw new Error(event.kind);
  expect(streamed).toEqual([{ silentMs: 90_000, signal: undefined }]);
});
