import { KonvergeError } from "@konverge/core";
import type { Command } from "commander";
import { runWithClient, withClient } from "../ask/run-with-client.ts";

interface TopFlags {
  readonly server?: string;
  readonly cluster?: string;
}

const HELP = `
Shows the problems, the guard of the API server, and the requests, failures
and durations of each controller. Updates every 2 s. The keys follow k9s:
1 to 5 select a list, j and k a row, Enter opens it, / filters, q quits.

Examples:
  konverge top
  konverge top --server https://konverge.example.com --cluster east`;

export function addTopCommand(program: Command): void {
  withClient(program.command("top").description("Show a live view in the terminal"))
    .addHelpText("after", HELP)
    .action((flags: TopFlags) =>
      runWithClient(flags, async (asking) => {
        const { stdin: input, stdout: output } = process;
        if (!input.isTTY || !output.isTTY) {
          throw new KonvergeError(
            "invalid_request",
            "konverge top needs a terminal; use konverge status, or a list with --watch",
          );
        }
        const { runTop } = await import("../top/run-top.ts");
        process.exitCode = await runTop(asking, { input, output });
      }),
    );
}
