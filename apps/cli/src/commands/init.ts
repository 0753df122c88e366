import { relative } from "node:path";
import type { Command } from "commander";
import { initProject } from "../init/init-project.ts";

export function addInitCommand(program: Command): void {
  program
    .command("init")
    .description("Create a project with controller, CRD, test and Dockerfile")
    .argument("[dir]", "Directory that is empty or does not exist", ".")
    .action(async (dir: string) => {
      const folder = await initProject(dir);
      const there = relative(process.cwd(), folder);
      process.stderr.write(
        [
          `created ${folder}`,
          "",
          "Next:",
          ...(there === "" ? [] : [`  cd ${there}`]),
          "  npm install",
          "  npm test          Test the controller with its own API server and Redis",
          "  npm run dev       Run a local stack that reloads on save",
          "",
          "",
        ].join("\n"),
      );
    });
}
