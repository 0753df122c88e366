import { ensureError, ERRORS, isKonvergeError } from "@konverge/core";
import { Command } from "commander";
import { addApiCommand } from "./commands/api.ts";
import { addApiserverCommand } from "./commands/apiserver.ts";
import { addAttemptCommand } from "./commands/attempt.ts";
import { addCrdsCommand } from "./commands/crds.ts";
import { addDemoCommand } from "./commands/demo.ts";
import { addDeadLetterCommand } from "./commands/dead-letter.ts";
import { addGuardCommand } from "./commands/guard.ts";
import { addManifestsCommand } from "./commands/manifests.ts";
import { addObjectCommand } from "./commands/object.ts";
import { addQueueCommand } from "./commands/queue.ts";
import { addReconcileCommand } from "./commands/reconcile.ts";
import { addTokenCommand } from "./commands/token.ts";
import { addWorkerCommand } from "./commands/worker.ts";
import { exitCodesHelp } from "./exit-codes.ts";
import { readVersion } from "./version.ts";

const USAGE = 2;

const program = new Command("konverge")
  .description("Durable Kubernetes reconciliation")
  .version(readVersion())
  .addHelpText("after", exitCodesHelp())
  .exitOverride((error) => {
    process.exit(error.exitCode === 0 ? 0 : USAGE);
  });
addWorkerCommand(program);
addApiCommand(program);
addApiserverCommand(program);
addCrdsCommand(program);
addManifestsCommand(program);
addDemoCommand(program);
addGuardCommand(program);
addReconcileCommand(program);
addObjectCommand(program);
addAttemptCommand(program);
addQueueCommand(program);
addDeadLetterCommand(program);
addTokenCommand(program);

try {
  await program.parseAsync();
} catch (thrown) {
  const error = ensureError(thrown);
  const known = isKonvergeError(error);
  process.stderr.write(`konverge: ${known ? error.message : (error.stack ?? error.message)}\n`);
  if (known && error.cause !== undefined)
    process.stderr.write(`  because: ${ensureError(error.cause).message}\n`);
  process.exit(known ? ERRORS[error.code].exitCode : 1);
}
