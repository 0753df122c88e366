/** `npm run conformance`: runs the suite, kubectl and programs of other clients on the embedded and, if available, a real API server. */
import { parseArgs } from "node:util";
import type { Report } from "./run-suite.ts";

const USAGE = `npm run conformance [-- [-o table|json] [-t TEXT]]
  -o      table (default) or json: { servers, cases, passed, differences }
  -t      run only cases, scripts and programs whose name contains this`;

const log = (line: string): void => console.error(`conformance: ${line}`);

try {
  process.exitCode = await main();
} catch (error) {
  const isUsage =
    error instanceof Error && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS");
  log(
    isUsage ? `${error.message}\n${USAGE}` : String(error instanceof Error ? error.stack : error),
  );
  process.exitCode = isUsage ? 2 : 1;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      output: { type: "string", short: "o", default: "table" },
      text: { type: "string", short: "t", default: "" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  if (values.output !== "table" && values.output !== "json") {
    log(`-o ${values.output}: use table or json\n${USAGE}`);
    return 2;
  }
  const { comparePrograms } = await import("./foreign/compare-programs.ts");
  const { compareWithKubectl } = await import("./foreign/compare-with-kubectl.ts");
  const { FOREIGN_PROGRAMS } = await import("./foreign/foreign-programs.ts");
  const { runSuite } = await import("./run-suite.ts");
  const { startEmbedded, startReal } = await import("./servers.ts");
  const servers = [await startEmbedded()];
  try {
    const real = await startReal(log);
    if (real !== undefined) servers.push(real);
    const report = await runSuite(servers, (name) => name.includes(values.text));
    if (values.output === "json") console.log(JSON.stringify(report, null, 2));
    else print(report);
    const matches = (name: string) => name.includes(values.text);
    const kubectl = await compareWithKubectl(servers, matches, log);
    const comparisons = [{ name: "kubectl", ...kubectl }];
    for (const programs of FOREIGN_PROGRAMS) {
      const compared = await comparePrograms(servers, programs, { matches, log });
      comparisons.push({ name: programs.name, ...compared });
    }
    for (const deviation of comparisons.flatMap(({ deviations }) => deviations)) log(deviation);
    for (const { name, commands, deviations } of comparisons) {
      log(`${name}: ${commands} runs, ${deviations.length} differences`);
    }
    const cases = comparisons.reduce((sum, { commands }) => sum + commands, report.cases);
    const differences = comparisons.reduce((sum, { deviations }) => sum + deviations.length, 0);
    const wrong = report.failures.length + report.differences.length + differences;
    return wrong === 0 && cases > 0 ? 0 : 1;
  } finally {
    for (const server of servers) await server.stop();
  }
}

function print({ servers, cases, passed, differences, failures }: Report): void {
  const show = (value: unknown) => (value === undefined ? "absent" : JSON.stringify(value));
  for (const { case: name, server, problem } of failures)
    console.log(`${name}\n  ${server}: ${problem}`);
  for (const { case: name, path, embedded, real } of differences) {
    console.log(`${name}\n  ${path}\n    embedded  ${show(embedded)}\n    real      ${show(real)}`);
  }
  console.log(`servers: ${servers.map(({ kind, version }) => `${kind} ${version}`).join(", ")}`);
  console.log(
    `${passed} of ${cases} cases passed, ${differences.length} differences, ${failures.length} failures`,
  );
}
