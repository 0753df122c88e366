import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { KonvergeError } from "@konverge/core";
import type { Command } from "commander";
import { readVersion } from "../process/version.ts";

const DEMO = "@konverge/demo";

interface Demo {
  createDemoProgram(name: string): Command;
}

/** The demo is a package of its own, which depends on this one. It parses its arguments itself. */
export function addDemoCommand(program: Command): void {
  program
    .command("demo")
    .usage("[options]")
    .description(`Run the demo, if ${DEMO} is installed`)
    .allowUnknownOption()
    .allowExcessArguments()
    .helpOption(false)
    .action(async (_flags: object, { args }: Command) => {
      const demo = await loadDemo();
      await demo.createDemoProgram("konverge demo").parseAsync(args, { from: "user" });
    });
}

/** Loads the demo of the current folder or beside this package. @throws KonvergeError `not_found` if it is not installed */
async function loadDemo(): Promise<Demo> {
  const require = createRequire(import.meta.url);
  let path: string;
  try {
    path = require.resolve(DEMO, { paths: [process.cwd(), import.meta.dirname] });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") throw cause;
    throw new KonvergeError(
      "not_found",
      `the demo is not installed; run \`npm install ${DEMO}@${readVersion()}\` and repeat the command`,
    );
  }
  return (await import(pathToFileURL(path).href)) as Demo;
}
