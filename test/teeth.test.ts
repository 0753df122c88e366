import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { MUTATION_PATCHES } from "./chaos/teeth/mutation-patches.ts";
import { PATCHES, type Change } from "./chaos/teeth/patches.ts";
import { REPLAY_PATCHES } from "./chaos/teeth/replay-patches.ts";
import { RESTORE_PATCHES } from "./chaos/teeth/restore-patches.ts";
import { VERB_PATCHES } from "./chaos/teeth/verb-patches.ts";
import { WORKFLOW_PATCHES } from "./chaos/teeth/workflow-patches.ts";

/** Fails early, before the chaos tests, if moved code no longer matches a test build's replacement. */
const changes = Object.entries({
  ...MUTATION_PATCHES,
  ...PATCHES,
  ...REPLAY_PATCHES,
  ...RESTORE_PATCHES,
  ...VERB_PATCHES,
  ...WORKFLOW_PATCHES,
}).flatMap(([name, all]: [string, readonly Change[]]) =>
  all.map((change) => ({ name, ...change })),
);

test.each(changes)("the test build without $name matches once in $file", ({ file, from }) => {
  const source = readFileSync(new URL(`../${file}`, import.meta.url), "utf8");
  expect(source.split(from)).toHaveLength(2);
});
