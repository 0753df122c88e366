/** Depth of nested errors: a Redis Cluster's error contains that of its last node. */
const MAX_DEPTH = 5;

/**
 * Removes the command arguments from an ioredis error and its nested errors. Arguments contain the password (`AUTH`,
 * `HELLO`) and stored data, and errors are logged (P12). The command's name remains.
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
