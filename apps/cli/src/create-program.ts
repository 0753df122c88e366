import { Command, Help, type Option } from "commander";
import { addApiCommand } from "./commands/api.ts";
import { addDriftCommand } from "./commands/drift.ts";
import { addApprovalCommand } from "./commands/approval.ts";
import { addApiserverCommand } from "./commands/apiserver.ts";
import { addAttemptCommand } from "./commands/attempt.ts";
import { addAuditCommand } from "./commands/audit.ts";
import { addCompletionCommand } from "./commands/completion.ts";
import { addConfigCommand } from "./commands/config.ts";
import { addCrdsCommand } from "./commands/crds.ts";
import { addDeadLetterCommand } from "./commands/dead-letter.ts";
import { addDeployCommand } from "./commands/deploy.ts";
import { addDemoCommand } from "./commands/demo.ts";
import { addDevCommand } from "./commands/dev.ts";
import { addDoctorCommand } from "./commands/doctor.ts";
import { addContentionCommand } from "./commands/contention.ts";
import { addCapacityCommand } from "./commands/capacity.ts";
import { addClusterCommand } from "./commands/cluster.ts";
import { addExplainCommand } from "./commands/explain.ts";
import { addGuardCommand } from "./commands/guard.ts";
import { addLimitCommand } from "./commands/limit.ts";
import { addNotificationCommand } from "./commands/notification.ts";
import { addInitCommand } from "./commands/init.ts";
import { addManifestsCommand } from "./commands/manifests.ts";
import { addOpenCommand } from "./commands/open.ts";
import { addMcpCommand } from "./commands/mcp.ts";
import { addMutateCommand } from "./commands/mutate.ts";
import { addMutationCommand } from "./commands/mutation.ts";
import { addObjectCommand } from "./commands/object.ts";
import { addPlanCommand } from "./commands/plan.ts";
import { addQueueCommand } from "./commands/queue.ts";
import { addReconcileCommand } from "./commands/reconcile.ts";
import { addRestoreCommand } from "./commands/restore.ts";
import { addRunCommand } from "./commands/run.ts";
import { addScheduleCommand } from "./commands/schedule.ts";
import { addSimulateCommand } from "./commands/simulate.ts";
import { addStatusCommand } from "./commands/status.ts";
import { addSupportBundleCommand } from "./commands/support-bundle.ts";
import { addTopCommand } from "./commands/top.ts";
import { addTokenCommand } from "./commands/token.ts";
import { addTypesCommand } from "./commands/types.ts";
import { addWorkerCommand } from "./commands/worker.ts";
import { pathOf } from "./ask/run-with-client.ts";
import { COMMON_OPTIONS } from "./text/output.ts";
import { exitCodesHelp } from "./process/exit-codes.ts";
import { nameCalls } from "./process/program-name.ts";
import { readVersion } from "./process/version.ts";

const USAGE = 2;

/**
 * Adds the valid commands to the error for an unknown one. Also adds a hint if an action, which takes the controller as an
 * argument, is confused with a list, which filters by options.
 */
function withHint(text: string, command: Command): string {
  const commands = command.createHelp().visibleCommands(command);
  return text
    .replace(/^error: /, "konverge: ")
    .replace(
      /(unknown command .*)\n((?:.*\n)*)/,
      (_all, what: string, rest: string) =>
        `${what}\n${rest}Commands of ${pathOf(command)}: ${commands.map((each) => each.name()).join(", ")}\n`,
    )
    .replace(/(unknown option '--controller)'\n/, "$1': pass the controller name as an argument\n")
    .replace(
      /(too many arguments for 'list'.*)\n/,
      "$1 Filter lists with options such as --controller.\n",
    );
}

/** Returns the command line, ready to parse. */
export function createProgram(): Command {
  const program = new Command("konverge")
    .description("Durable Kubernetes reconciliation")
    .version(readVersion(), "-V, --version", "Print the version")
    .helpOption("-h, --help", "Show help")
    .addHelpText("after", exitCodesHelp())
    .exitOverride((error) => {
      process.exit(error.exitCode === 0 ? 0 : USAGE);
    });
  program.commandsGroup("Get started:");
  addDemoCommand(program);
  addInitCommand(program);
  addDevCommand(program);
  addSimulateCommand(program);
  program.commandsGroup("Run:");
  addWorkerCommand(program);
  addApiCommand(program);
  addApiserverCommand(program);
  addCrdsCommand(program);
  addTypesCommand(program);
  addManifestsCommand(program);
  addDeployCommand(program);
  program.commandsGroup("Inspect and control:");
  addStatusCommand(program);
  addTopCommand(program);
  addOpenCommand(program);
  addReconcileCommand(program);
  addMutateCommand(program);
  addMutationCommand(program);
  addExplainCommand(program);
  addObjectCommand(program);
  addAttemptCommand(program);
  addContentionCommand(program);
  addRunCommand(program);
  addScheduleCommand(program);
  addQueueCommand(program);
  addDeadLetterCommand(program);
  addClusterCommand(program);
  addPlanCommand(program);
  addApprovalCommand(program);
  addDriftCommand(program);
  addGuardCommand(program);
  addLimitCommand(program);
  addMcpCommand(program);
  addNotificationCommand(program);
  program.commandsGroup("Administration:");
  addTokenCommand(program);
  addRestoreCommand(program);
  addAuditCommand(program);
  addDoctorCommand(program);
  addCapacityCommand(program);
  addSupportBundleCommand(program);
  addConfigCommand(program);
  addCompletionCommand(program);
  arrangeTexts(program);
  return program;
}

/** Sets the texts of errors and help of a command and all below it. */
function arrangeTexts(command: Command): void {
  command.configureHelp({ groupItems: commonOptionsLast });
  command.configureOutput({
    outputError: (text, write) => write(withHint(text, command)),
    writeOut: (text) => process.stdout.write(nameCalls(text)),
    writeErr: (text) => process.stderr.write(nameCalls(text)),
  });
  if (command.commands.length > 0) {
    command.helpCommand("help [command]", "Show help for a command");
  }
  for (const child of command.commands) arrangeTexts(child);
}

const HELP = new Help();

function commonOptionsLast<Item extends Command | Option>(
  ...items: Parameters<typeof HELP.groupItems<Item>>
): Map<string, Item[]> {
  const groups = HELP.groupItems(...items);
  const common = groups.get(COMMON_OPTIONS);
  groups.delete(COMMON_OPTIONS);
  if (common !== undefined) groups.set(COMMON_OPTIONS, common);
  return groups;
}
