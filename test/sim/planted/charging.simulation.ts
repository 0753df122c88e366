import type { Simulation } from "../../../apps/cli/src/testing/index.ts";
import { BUGS } from "./bugs.ts";
import type { Planted } from "./planted-bug.ts";

const bug = BUGS.find(({ name }) => name.startsWith("non-idempotent"))!;
let current: Planted | undefined;

/** A controller that charges twice after a crash. */
export default {
  config: () => (current = bug.wrong()),
  scenario: bug.scenario(() => current),
} satisfies Simulation;
