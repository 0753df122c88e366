import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { PATCHES, type Change } from "./chaos/teeth/patches.ts";
import { VERB_PATCHES } from "./chaos/teeth/verb-patches.ts";
import { WORKFLOW_PATCHES } from "./chaos/teeth/workflow-patches.ts";

/** Seen in seconds, and not at the end of the chaos tests: code has moved, and a test build would be one of another protection. */
const changes = Object.entries({ ...PATCHES, ...VERB_PATCHES, ...WORKFLOW_PATCHES }).flatMap(
  ([name, all]: [string, readonly Change[]]) => all.map((change) => ({ name, ...change })),
);

test.each(changes)("the test build without $name finds its place in $file", ({ file, from }) => {
  const source = readFileSync(new URL(`../${file}`, import.meta.url), "utf8");
  expect(source.split(from)).toHaveLength(2);
});
