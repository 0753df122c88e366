import { ensureError, ERRORS, isKonvergeError } from "@konverge/core";
import { createProgram } from "./create-program.ts";

// A reader such as `head` may close the pipe early.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

try {
  await createProgram().parseAsync();
} catch (thrown) {
  const error = ensureError(thrown);
  const known = isKonvergeError(error);
  process.stderr.write(`konverge: ${known ? error.message : (error.stack ?? error.message)}\n`);
  if (known && error.cause !== undefined)
    process.stderr.write(`  because: ${ensureError(error.cause).message}\n`);
  process.exit(known ? ERRORS[error.code].exitCode : 1);
}
