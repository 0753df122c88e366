/**
 * Implements `npm run game-day`: rehearses disasters on real processes, and compares the alerts, `konverge status` and the API of
 * the dashboard with what happened.
 */
import { parseArgs } from "node:util";
import { openPromql } from "../support/promql.ts";
import { DISASTERS } from "./disasters/index.ts";
import { startPlane } from "./plane.ts";
import { reportText, type Played } from "./report.ts";
import { Scene } from "./scene.ts";

const log = (line: string): void => console.error(`game day: ${line}`);
const { values, positionals } = readArguments();
const names = positionals.length > 0 ? positionals : Object.keys(DISASTERS);
const unknown = names.filter((name) => !Object.hasOwn(DISASTERS, name));
if (unknown.length > 0) exitWithUsage(`no disaster "${unknown.join('", "')}"`);
if (values.help) exitWithUsage();

const promql = await openPromql();
if ("missing" in promql) {
  log(`alerts cannot be evaluated: ${promql.missing}`);
  process.exit(1);
}
await using plane = await startPlane(log);
log(`plays ${names.length} disasters on ${plane.description}`);
const played: Played[] = [];
for (const name of names) {
  log(`== ${name}`);
  const scene = new Scene({ name, plane, promql, log });
  try {
    await DISASTERS[name]?.play(scene);
  } catch (error) {
    scene.fact("the disaster could not be played to its end", [String(error)]);
    log(String((error as Error).stack));
    scene.logProcesses();
  } finally {
    await scene[Symbol.asyncDispose]();
  }
  played.push({ name, rows: scene.rows });
}
console.log(reportText(played));
process.exitCode = played.some(({ rows }) => rows.some((row) => row.differences.length > 0))
  ? 1
  : 0;

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: { help: { type: "boolean", short: "h", default: false } },
    });
  } catch (error) {
    exitWithUsage((error as Error).message);
  }
}

function exitWithUsage(problem?: string): never {
  if (problem !== undefined) log(problem);
  console.log(`npm run game-day [-- NAME...]\n\nRehearses all disasters, or the named ones:`);
  for (const [name, { title }] of Object.entries(DISASTERS)) {
    console.log(`  ${name.padEnd(20)} ${title}`);
  }
  process.exit(problem === undefined ? 0 : 2);
}
