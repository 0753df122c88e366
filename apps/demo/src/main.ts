import { ensureError, ERRORS, isKonvergeError } from "@konverge/core";
import { createDemoProgram } from "./create-demo-program.ts";

try {
  await createDemoProgram("npm run demo --").parseAsync();
} catch (thrown) {
  const error = ensureError(thrown);
  const known = isKonvergeError(error);
  process.stderr.write(`demo: ${known ? error.message : (error.stack ?? error.message)}\n`);
  if (known && error.cause !== undefined) {
    process.stderr.write(`  cause: ${ensureError(error.cause).message}\n`);
  }
  process.exit(known ? ERRORS[error.code].exitCode : 1);
}
