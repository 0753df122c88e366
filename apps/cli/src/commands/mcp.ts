import { once } from "node:events";
import type { Command } from "commander";
import { runWithClient, withClient } from "../ask/run-with-client.ts";

interface McpFlags {
  readonly server?: string;
  readonly cluster?: string;
}

const HELP = `
Serves read-only tools over stdin and stdout: explain, object, attempts,
problems and workers. An MCP client starts the command and ends it.

Examples:
  konverge mcp --server https://konverge.example.com`;

export function addMcpCommand(program: Command): void {
  withClient(program.command("mcp").description("Serve read-only tools to an MCP client"))
    .addHelpText("after", HELP)
    .action((flags: McpFlags) =>
      runWithClient(flags, async (asking) => {
        const [{ serveStdio }, { createMcpServer }] = await Promise.all([
          import("@modelcontextprotocol/server/stdio"),
          import("../mcp/create-mcp-server.ts"),
        ]);
        const served = serveStdio(() => createMcpServer(asking), {
          onerror: ({ message }) => process.stderr.write(`konverge: ${message}\n`),
        });
        await once(process.stdin, "end");
        await served.close();
      }),
    );
}
