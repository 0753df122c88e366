/**
 * What each root script runs once the machine is ready: a file of the repository with its first arguments. The only table.
 * `setup` runs nothing: scripts that call a tool themselves go through it first. `pages`: it serves the dashboard.
 * @type {Readonly<Record<string, { run: readonly string[], redis: boolean, pages: boolean }>>}
 */
export const COMMANDS = {
  setup: { run: [], redis: false, pages: true },
  check: { run: ["test/check.ts"], redis: true, pages: true },
  demo: { run: ["apps/demo/src/main.ts"], redis: true, pages: true },
  test: { run: ["test/run.ts"], redis: true, pages: true },
  bench: { run: ["test/bench/main.ts"], redis: true, pages: false },
  conformance: { run: ["test/conformance/main.ts"], redis: false, pages: false },
  envtest: { run: ["infra/envtest/main.js"], redis: false, pages: false },
};
