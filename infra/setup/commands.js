/**
 * The file and first arguments of each root script, run once the machine is ready. The only such table. `setup` runs
 * nothing: scripts that call a tool themselves run it first. `pages`: the script serves the dashboard.
 * @type {Readonly<Record<string, { run: readonly string[], redis: boolean, pages: boolean }>>}
 */
export const COMMANDS = {
  setup: { run: [], redis: false, pages: true },
  check: { run: ["test/check.ts"], redis: true, pages: true },
  demo: { run: ["apps/demo/src/main.ts"], redis: true, pages: true },
  test: { run: ["test/run.ts"], redis: true, pages: true },
  "game-day": { run: ["test/game-day/main.ts"], redis: true, pages: true },
  bench: { run: ["test/bench/main.ts"], redis: true, pages: false },
  conformance: { run: ["test/conformance/main.ts"], redis: false, pages: false },
  release: { run: ["infra/release/main.js"], redis: false, pages: true },
  envtest: { run: ["infra/envtest/main.js"], redis: false, pages: false },
};
