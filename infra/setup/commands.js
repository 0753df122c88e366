/**
 * What each root script runs once the machine is ready: a file of the repository with its first arguments. The only table.
 * `setup` runs nothing: scripts that call a tool themselves go through it first.
 * @type {Readonly<Record<string, { run: readonly string[], redis: boolean }>>}
 */
export const COMMANDS = {
  setup: { run: [], redis: false },
  check: { run: ["test/check.ts"], redis: true },
  demo: { run: ["apps/cli/src/main.ts", "demo"], redis: true },
  test: { run: ["test/run.ts"], redis: true },
  bench: { run: ["test/bench/main.ts"], redis: true },
  conformance: { run: ["test/conformance/main.ts"], redis: false },
  envtest: { run: ["infra/envtest/main.js"], redis: false },
};
