/** How deep errors hold others: that of a Redis Cluster the one of its last node. */
const MAX_DEPTH = 5;

/**
 * Takes the arguments of the command out of an error of ioredis, and out of those within: they hold the password (`AUTH`,
 * `HELLO`) and whatever was to be stored, and an error goes into logs (P12). The command's name stays.
 */
export function forgetArguments(error: unknown, depth = 0): void {
  if (!(error instanceof Error) || depth > MAX_DEPTH) return;
  const { command, lastNodeError, cause } = error as {
    readonly command?: { readonly name?: string };
    readonly lastNodeError?: unknown;
    readonly cause?: unknown;
  };
  if (command !== undefined) Object.assign(error, { command: { name: command.name } });
  forgetArguments(lastNodeError, depth + 1);
  forgetArguments(cause, depth + 1);
}
