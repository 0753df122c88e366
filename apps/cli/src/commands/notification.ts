import { defined, NOTIFICATION_STATES, type NotificationState } from "@konverge/core";
import { Option, type Command } from "commander";
import { parseCount } from "../ask/parse-count.ts";
import { groupHelp, runWithClient, withClient, type ClientFlags } from "../ask/run-with-client.ts";
import { notificationRows } from "../text/notification-text.ts";
import { print } from "../text/output.ts";

const HELP = `
  konverge notification list
  konverge notification list --state failed
  konverge notification list -o json

Receivers are defined in "notify" of the configuration. The last 1,000
notifications of a cluster are kept.`;

interface ListFlags extends ClientFlags {
  readonly state?: NotificationState;
  readonly limit: number;
}

export function addNotificationCommand(program: Command): void {
  const notification = program
    .command("notification")
    .description("Inspect notifications about faults")
    .addHelpText("afterAll", groupHelp(HELP));
  withClient(
    notification
      .command("list")
      .description("List notifications with their deliveries, newest first"),
  )
    .addOption(new Option("--state <state>", "State").choices(NOTIFICATION_STATES))
    .addOption(
      new Option("--limit <n>", "Number of notifications").default(100).argParser(parseCount),
    )
    .action((flags: ListFlags) =>
      runWithClient(flags, async ({ client, cluster }) => {
        const { limit } = flags;
        const list = await client.notifications.list({
          cluster,
          limit,
          ...defined({ state: flags.state }),
        });
        print(flags.output, {
          document: list,
          items: list.items,
          names: list.items.map(({ id }) => id),
          table: () => notificationRows(list.items),
          empty: "no notifications found",
        });
      }),
    );
}
