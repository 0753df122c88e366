import { relative } from "node:path";
import type { Command } from "commander";
import { initProject } from "../init/init-project.ts";

export function addInitCommand(program: Command): void {
  program
    .command("init")
    .description("make a project: a controller, its resource, a test, a Dockerfile")
    .argument("[dir]", "folder that is empty or does not exist yet", ".")
    .action(async (dir: string) => {
      const folder = await initProject(dir);
      const there = relative(process.cwd(), folder);
      process.stderr.write(
        [
          `made ${folder}`,
          "",
          "Next:",
          ...(there === "" ? [] : [`  cd ${there}`]),
          "  npm install",
          "  npm test          the controller on an API server and a Redis of its own",
          "  npm run dev       all of it on this machine; saving a file replaces the worker",
          "",
          "",
        ].join("\n"),
      );
    });
}
