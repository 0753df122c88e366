/** Plays programs until one breaks a promise: `play-main.ts FIRST_SEED COUNT`. Prints the findings as JSON. */
import { playSeed } from "./play-program.ts";

const [first = 0, count = 1] = process.argv.slice(2).map(Number);
let found: { readonly seed: number; readonly findings: readonly string[] } | undefined;
for (let seed = first; seed < first + count && found === undefined; seed += 1) {
  const findings = await playSeed(seed);
  if (findings.length > 0) found = { seed, findings };
}
process.stdout.write(
  `${JSON.stringify({ ...found, patch: process.env["FLEET_PATCH_APPLIED"] })}\n`,
);
process.exit(0);
